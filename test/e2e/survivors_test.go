// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// survivors is what must survive a move to another management cluster, by name: UIDs and times of the objects in the
// management cluster are new after it.
type survivors struct {
	// claims and nodes have the UIDs of NodeClaims and Nodes, which are in the workload cluster.
	claims, nodes map[string]string
	// links has the UID of the claim that each Machine serves, and the Machine's provider ID.
	links map[string]string
	// hooks has the hooks of each Machine.
	hooks map[string]string
	// generated has the replicas or a hash of the spec of each generated object.
	generated map[string]string
}

// String implements fmt.Stringer.
func (s survivors) String() string {
	hooks := lo.SumBy(slices.Collect(maps.Values(s.hooks)), func(of string) int { return len(strings.Fields(of)) })
	return fmt.Sprintf("claims %d  nodes %d  links %d  hooks %d  generated objects %d", len(s.claims), len(s.nodes), len(s.links), hooks, len(s.generated))
}

// survivorsOf lists what must survive.
func survivorsOf(ctx context.Context, g Gomega, s *stack.Stack) survivors {
	found := survivors{claims: map[string]string{}, nodes: map[string]string{}, links: map[string]string{}, hooks: map[string]string{}, generated: map[string]string{}}
	claims, nodes, machines := &karpv1.NodeClaimList{}, &corev1.NodeList{}, &clusterv1.MachineList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	for i := range claims.Items {
		found.claims[claims.Items[i].Name] = fmt.Sprintf("%s %s", claims.Items[i].UID, claims.Items[i].Status.ProviderID)
	}
	g.Expect(s.Workload.List(ctx, nodes, stack.Workers)).To(Succeed())
	for i := range nodes.Items {
		found.nodes[nodes.Items[i].Name] = fmt.Sprintf("%s %s", nodes.Items[i].UID, nodes.Items[i].Spec.ProviderID)
	}
	g.Expect(s.Management.List(ctx, machines)).To(Succeed())
	for i := range machines.Items {
		machine := &machines.Items[i]
		if uid := lifecycle.ClaimUID(machine); uid != "" {
			found.links[machine.Name] = fmt.Sprintf("%s %s %s", uid, lifecycle.ClaimName(machine), machine.Spec.ProviderID)
		}
		hooks := lo.Filter(lo.Keys(machine.Annotations), func(key string, _ int) bool {
			return strings.HasPrefix(key, clusterv1.PreDrainDeleteHookAnnotationPrefix) || strings.HasPrefix(key, clusterv1.PreTerminateDeleteHookAnnotationPrefix)
		})
		slices.Sort(hooks)
		found.hooks[machine.Name] = strings.Join(hooks, " ")
	}
	resources, err := kinds.Resources(ctx, s.Management)
	g.Expect(err).NotTo(HaveOccurred())
	for _, resource := range resources {
		found.generated[fmt.Sprintf("%s %s", resource.Kind, resource.Name)] = fmt.Sprintf("replicas %d", resource.Replicas)
	}
	infrastructures, err := kinds.Infrastructures(ctx, s.Management)
	g.Expect(err).NotTo(HaveOccurred())
	for _, infrastructure := range infrastructures {
		found.generated["infrastructure "+infrastructure.Name] = hash.Of("spec", infrastructure.Spec)
	}
	return found
}
