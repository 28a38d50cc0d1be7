// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/vsphere"
)

// removePods removes Pods of newPod, and their Nodes with everything that belongs to them.
func (v *onVSphere) removePods(ctx context.Context, g *WithT, pods ...*corev1.Pod) {
	before := len(v.claims(ctx, g))
	for _, pod := range pods {
		claim := v.claimOf(ctx, g, pod)
		g.Expect(v.Workload.Delete(ctx, pod)).To(Succeed())
		g.Expect(v.Workload.Delete(ctx, claim)).To(Succeed())
	}
	v.expectRunning(ctx, g, before-len(pods))
}

// machineOf returns the virtual machine on which a Pod runs.
func (v *onVSphere) machineOf(ctx context.Context, g Gomega, pod *corev1.Pod) vsphere.Machine {
	id := v.claimOf(ctx, g, pod).Status.ProviderID
	machine, found := lo.Find(v.machines(ctx, g), func(m vsphere.Machine) bool { return m.ProviderID() == id })
	g.Expect(found).To(BeTrue(), "a virtual machine has the provider ID %s", id)
	return machine
}
