// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"

	. "github.com/onsi/gomega"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// takeTurns expects virtual machines of both types with four CPUs while spec.spread lets them take turns, and of the cheapest type
// afterwards. Each zone has one of the cheapest type before, so with spec.spread the next one is of the other type.
func (v *onVSphere) takeTurns(ctx context.Context, g *WithT) {
	before := len(v.machines(ctx, g))
	v.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
		spec.Spread = []v1alpha1.Spread{{CapacityType: karpv1.CapacityTypeOnDemand, MaxPriceIncreasePercent: new(int32(50))}}
	})
	v.expectReady(ctx, g)
	for _, offer := range v.offers(ctx, g) {
		if offer.InstanceType == ownType || offer.InstanceType == otherType {
			g.Expect(offer.ComparedPricePerHour).To(HaveValue(BeNumerically("~", ownPrice, 1e-6)), "what Karpenter compares for %+v", offer)
		}
	}
	first, second := v.newPod(ctx, g, "turn-1"), v.newPod(ctx, g, "turn-2")
	g.Expect(v.Workload.Create(ctx, first)).To(Succeed())
	g.Expect(v.Workload.Create(ctx, second)).To(Succeed())
	v.expectRunning(ctx, g, before+2)
	g.Expect(v.machineOf(ctx, g, first).MemoryMiB).To(BeEquivalentTo(16<<10), "MiB of memory of the first virtual machine with spec.spread")
	g.Expect(v.machineOf(ctx, g, second).MemoryMiB).To(BeEquivalentTo(16<<10), "MiB of memory of the second virtual machine with spec.spread")

	// The zone of the third one has only one of the cheapest type: it would be the turn of the other type.
	v.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) { spec.Spread = nil })
	v.expectReady(ctx, g)
	third := v.newPod(ctx, g, "no-turn")
	g.Expect(v.Workload.Create(ctx, third)).To(Succeed())
	v.expectRunning(ctx, g, before+3)
	g.Expect(v.machineOf(ctx, g, third).MemoryMiB).To(BeEquivalentTo(32<<10), "MiB of memory of a virtual machine without spec.spread")

	v.removePods(ctx, g, first, second, third)
}
