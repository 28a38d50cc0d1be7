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

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/infrastructure/api/v1alpha1"
)

// counts is how much of everything there is.
type counts struct {
	pods, running                                           int
	claims, resources, templates, replicas, machines, nodes int
}

func (c counts) String() string {
	return fmt.Sprintf("pods %d/%d running  claims %d  machinedeployments %d (replicas %d, templates %d)  machines %d  nodes %d",
		c.running, c.pods, c.claims, c.resources, c.replicas, c.templates, c.machines, c.nodes)
}

// generated selects what the operator has made: the base is not among it.
var generated = client.HasLabels{v1alpha1.TemplateLabel}

// count asks the API servers.
func (s *story) count(ctx context.Context) (counts, error) {
	pods, claims, nodes := &corev1.PodList{}, &karpv1.NodeClaimList{}, &corev1.NodeList{}
	resources, machines := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineList{}
	templates := &infrav1.SimulatedMachineTemplateList{}
	err := errors.Join(
		s.Workload.List(ctx, pods, client.MatchingLabels{"demo": "true"}),
		s.Workload.List(ctx, claims),
		s.Workload.List(ctx, nodes),
		s.Management.List(ctx, resources),
		s.Management.List(ctx, machines),
		s.Management.List(ctx, templates, generated),
	)
	isRunning := func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero()
	}
	return counts{
		pods:      len(pods.Items),
		running:   lo.CountBy(pods.Items, isRunning),
		claims:    len(claims.Items),
		resources: len(resources.Items),
		templates: len(templates.Items),
		replicas:  lo.SumBy(resources.Items, func(r clusterv1.MachineDeployment) int { return int(lo.FromPtr(r.Spec.Replicas)) }),
		machines:  len(machines.Items),
		nodes:     len(nodes.Items),
	}, err
}

// atLeast returns the most nodes, MachineDeployments and templates there were.
func (c counts) atLeast(other counts) counts {
	c.nodes, c.resources, c.templates = max(c.nodes, other.nodes), max(c.resources, other.resources), max(c.templates, other.templates)
	return c
}
