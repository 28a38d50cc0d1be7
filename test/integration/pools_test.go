// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// poolSpec returns the spec of the machine pools that are generated for a fixture of MachinePools.
func (f *fixture) poolSpec() *infrav1.SimulatedMachinePoolSpec {
	return &f.infrastructure.(*infrav1.SimulatedMachinePoolTemplate).Spec.Template.Spec
}

// behaving sets the behavior of the machine pools of a fixture.
func (f *fixture) behaving(behavior infrav1.PoolBehavior) *fixture {
	f.poolSpec().Behavior = behavior
	return f
}

// watchInstances watches the instances of a fixture's machine pools until the spec ends.
func (f *fixture) watchInstances(ctx context.Context) *watch {
	GinkgoHelper()
	return newWatch(ctx, &infrav1.SimulatedMachine{}, func(instance client.Object) bool {
		return strings.HasPrefix(instance.GetLabels()[clusterv1.MachinePoolNameLabel], f.name+"-")
	})
}

// instances returns the instances of a fixture's machine pools.
func (f *fixture) instances(ctx context.Context) []infrav1.SimulatedMachine {
	GinkgoHelper()
	list := &infrav1.SimulatedMachineList{}
	Expect(env.client.List(ctx, list, client.HasLabels{clusterv1.MachinePoolNameLabel})).To(Succeed())
	return lo.Filter(list.Items, func(instance infrav1.SimulatedMachine, _ int) bool {
		return strings.HasPrefix(instance.Labels[clusterv1.MachinePoolNameLabel], f.name+"-")
	})
}

// simulatedPools returns the infrastructure's machine pools of a fixture.
func (f *fixture) simulatedPools(ctx context.Context) []infrav1.SimulatedMachinePool {
	GinkgoHelper()
	list := &infrav1.SimulatedMachinePoolList{}
	Expect(env.client.List(ctx, list, client.HasLabels{clusterv1.ClusterNameLabel})).To(Succeed())
	return lo.Filter(list.Items, func(pool infrav1.SimulatedMachinePool, _ int) bool { return strings.HasPrefix(pool.Name, f.name+"-") })
}

// simulatedPool waits until there is one machine pool, and the MachinePool owns it.
func (f *fixture) simulatedPool(ctx context.Context) *infrav1.SimulatedMachinePool {
	GinkgoHelper()
	var found infrav1.SimulatedMachinePool
	Eventually(ctx, func(g Gomega) {
		pools := f.simulatedPools(ctx)
		g.Expect(pools).To(HaveLen(1))
		found = pools[0]
		owner := metav1.GetControllerOf(&found)
		g.Expect(owner).NotTo(BeNil())
		g.Expect(*owner).To(And(HaveField("Kind", "MachinePool"), HaveField("UID", f.resource(ctx).GetUID())))
	}).Should(Succeed())
	return &found
}
