// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/stack/kinds"
)

// counts is how many objects exist. Resources and templates are those of all kinds, and templates include the
// infrastructure pools of MachinePools.
type counts struct {
	kind                                                    kinds.Kind
	pods, running                                           int
	claims, resources, templates, replicas, machines, nodes int
}

func (c counts) String() string {
	return fmt.Sprintf("pods %d/%d running  claims %d  %s %d (replicas %d, templates %d)  machines %d  nodes %d",
		c.running, c.pods, c.claims, c.kind.Plural(), c.resources, c.replicas, c.templates, c.machines, c.nodes)
}

// count lists the objects in both clusters.
func (s *story) count(ctx context.Context) (counts, error) {
	pods, claims, nodes := &corev1.PodList{}, &karpv1.NodeClaimList{}, &corev1.NodeList{}
	machines := &clusterv1.MachineList{}
	resources, resourcesErr := kinds.Resources(ctx, s.Management)
	templates, templatesErr := kinds.Infrastructures(ctx, s.Management)
	err := errors.Join(
		resourcesErr,
		templatesErr,
		s.Workload.List(ctx, pods, client.MatchingLabels{"demo": "true"}),
		s.Workload.List(ctx, claims),
		s.Workload.List(ctx, nodes),
		s.Management.List(ctx, machines),
	)
	isRunning := func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero()
	}
	return counts{
		kind:      s.kind,
		pods:      len(pods.Items),
		running:   lo.CountBy(pods.Items, isRunning),
		claims:    len(claims.Items),
		resources: len(resources),
		templates: len(templates),
		replicas:  lo.SumBy(resources, func(r kinds.Resource) int { return r.Replicas }),
		machines:  len(machines.Items),
		nodes:     len(nodes.Items),
	}, err
}

// atLeast returns the maximum of nodes, resources and templates of both counts.
func (c counts) atLeast(other counts) counts {
	c.nodes, c.resources, c.templates = max(c.nodes, other.nodes), max(c.resources, other.resources), max(c.templates, other.templates)
	return c
}
