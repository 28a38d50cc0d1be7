// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/state"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
)

// These specs cover what can go wrong when the provider ID of a launched claim changes
// (docs/design/provider-ids.md).
var _ = forEachKind("A claim's provider ID", func(k kind) {
	It("is provisional from the launch on, and then the Machine's, even if the Node joins before", func(ctx SpecContext) {
		// The instance has an ID and a Node immediately; the Machine gets the ID later.
		f := k.newFixture("swap").delays(0, never, 0).createReady(ctx)
		steps := env.watchClaims(ctx)
		claim := f.newClaim()
		seen := f.watchState(claim)
		Expect(env.client.Create(ctx, claim)).To(Succeed())

		machine := env.waitMachine(ctx, claim)
		var node *corev1.Node
		Eventually(ctx, func() *corev1.Node {
			node = env.nodeOf(ctx, env.simulated(ctx, machine).Spec.ProviderID)
			return node
		}).ShouldNot(BeNil(), "the Node")
		env.waitFor(ctx, claim, karpv1.ConditionTypeLaunched)
		Eventually(ctx, func() bool { return env.state.Synced(ctx) }).Should(BeTrue())
		f.caughtUp(ctx)
		Expect(env.providerID(ctx, claim)).To(Equal(provisionalID(claim)))
		Expect(claim.StatusConditions().Get(karpv1.ConditionTypeRegistered).IsTrue()).To(BeFalse())
		Expect(env.stateNodesOf(claim)).To(HaveLen(1))

		By("letting the Machine get its provider ID")
		env.provision(ctx, machine)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		Expect(claim.Status.ProviderID).To(Equal(node.Spec.ProviderID))
		// They arrive on a separate watch.
		Eventually(ctx, func() []claimStep { return steps.of(claim) }).Should(Equal([]claimStep{
			{"", false},
			{provisionalID(claim), false},
			{node.Spec.ProviderID, false},
			{node.Spec.ProviderID, true},
		}), "provider ID and whether the claim is registered")

		Eventually(ctx, func(g Gomega) {
			nodes := env.stateNodes(func(n *state.StateNode) bool {
				return n.ProviderID() == node.Spec.ProviderID || n.Name() == node.Name || n.Name() == claim.Name
			})
			g.Expect(nodes).To(HaveLen(1), "nodes in core's view")
			g.Expect(nodes[0].Node).NotTo(BeNil())
			g.Expect(nodes[0].NodeClaim).NotTo(BeNil())
			g.Expect(nodes[0].Initialized()).To(BeTrue())
			g.Expect(env.usedCPU(f)).To(BeEquivalentTo(cpus))
		}).Should(Succeed())
		nodes, cpu := seen.most()
		Expect(nodes).To(Equal(1), "nodes that the claim had in core's view at any time")
		Expect(cpu).To(BeEquivalentTo(cpus), "CPU of the NodePool at any time")

		By("deleting the claim")
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
		Eventually(ctx, func() int64 { return env.usedCPU(f) }).Should(BeZero())
	})

	It("is unique while it is provisional", func(ctx SpecContext) {
		f := k.newFixture("unique").delays(never, never, 0).createReady(ctx)
		claims := f.launch(ctx, 5)
		ids := map[string]bool{}
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeLaunched)
			Expect(claim.Status.ProviderID).To(Equal(provisionalID(claim)))
			ids[claim.Status.ProviderID] = true
		}
		Expect(ids).To(HaveLen(len(claims)))
	})

	It("is corrected when core writes the provisional one again, without another launch", func(ctx SpecContext) {
		f := k.newFixture("heal").createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		id, conditions, calls, mark := claim.Status.ProviderID, claim.Status.Conditions, createCalls(), env.requests.mark()

		env.setProviderID(ctx, claim, provisionalID(claim))
		env.waitProviderID(ctx, claim, id)
		f.caughtUp(ctx)
		Expect(env.providerID(ctx, claim)).To(Equal(id))

		Expect(claim.Status.Conditions).To(ContainElements(conditions), "conditions of the claim")
		Expect(createCalls()).To(Equal(calls), "calls of CloudProvider.Create")
		Expect(env.stateNodesOf(claim)).To(HaveLen(1))
		Expect(env.usedCPU(f)).To(BeEquivalentTo(cpus))
		patches := env.requests.since(mark, func(r request) bool {
			return r.write() && strings.HasSuffix(r.path, "/nodeclaims/"+claim.Name+"/status") && strings.Contains(r.body, id)
		})
		Expect(patches).To(HaveLen(1))
		Expect(patches[0].body).NotTo(ContainSubstring("conditions"))
	})

	It("is not taken from another claim, and the others continue", func(ctx SpecContext) {
		owner := k.newFixture("owner").breaks(history.ProviderID).delays(never, never, 0).createReady(ctx)
		late := k.newFixture("late").delays(0, never, never).createReady(ctx)

		By("giving a claim, by hand, the ID that another one's Machine is about to have")
		has, wants := owner.launchOne(ctx), late.launchOne(ctx)
		env.waitMachine(ctx, has)
		env.annotate(ctx, owner.resource(ctx).API(), clusterv1.PausedAnnotation, new("")) // so that it is not corrected
		machine := env.waitMachine(ctx, wants)
		var id string
		Eventually(ctx, func() string {
			id = env.simulated(ctx, machine).Spec.ProviderID
			return id
		}).ShouldNot(BeEmpty())
		env.setProviderID(ctx, has, id)
		env.provision(ctx, machine)
		Eventually(ctx, func() string {
			Expect(env.get(ctx, machine)).To(Succeed())
			return machine.Spec.ProviderID
		}).Should(Equal(id))
		late.caughtUp(ctx)
		Expect(env.providerID(ctx, wants)).To(Equal(provisionalID(wants)))

		By("launching another one of the same MachineDeployment")
		other := late.launchOne(ctx)
		env.provision(ctx, env.waitMachine(ctx, other))
		Eventually(ctx, func() string { return env.providerID(ctx, other) }).Should(And(HavePrefix("sim://"), Not(Equal(id))))
		Expect(env.providerID(ctx, wants)).To(Equal(provisionalID(wants)))

		By("letting the first claim be corrected")
		env.annotate(ctx, owner.resource(ctx).API(), clusterv1.PausedAnnotation, nil)
		env.waitProviderID(ctx, has, provisionalID(has))
		env.waitProviderID(ctx, wants, id)
	})
})

var _ = forEachKind("A link", func(k kind) {
	It("that is added by hand to a claim with a Machine is undone", func(ctx SpecContext) {
		f := k.newFixture("twice").breaks(history.DoubleLink).delays(0, 0, never).createReady(ctx)
		machines := f.watchMachines(ctx)
		claims := f.launch(ctx, 2)
		first, second := env.waitMachine(ctx, claims[0]), env.waitMachine(ctx, claims[1])
		for _, claim := range claims {
			Eventually(ctx, func() string { return env.providerID(ctx, claim) }).Should(HavePrefix("sim://"))
		}
		env.change(ctx, second, func() {
			second.Labels[v1alpha1.NodeClaimUIDLabel] = string(claims[0].UID)
			second.Annotations[v1alpha1.NodeClaimAnnotation] = claims[0].Name
		})
		Eventually(ctx, func() []types.UID { return uids(env.machinesOf(ctx, claims[1])) }).Should(ConsistOf(second.UID))
		Expect(uids(env.machinesOf(ctx, claims[0]))).To(ConsistOf(first.UID))
		f.caughtUp(ctx)
		Expect(machines.everCreated()).To(HaveLen(2))
		Expect(machines.everDeleted()).To(BeEmpty())
		Expect(f.resource(ctx).Replicas()).To(BeEquivalentTo(2))
	})
})
