// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

var _ = forEachKind("While the operator cannot reach a cluster", func(k kind) {
	DescribeTable("nothing is deleted or fails, and then everything continues", last, func(ctx SpecContext, cluster string) {
		f := k.newFixture("outage-"+cluster).delays(time.Second, time.Second, 2*time.Second)
		f.template.Spec.SpareTTLSeconds = new(int32(never / time.Second))
		f.createReady(ctx)
		machines, claims, nodes := f.watchMachines(ctx), f.watchPool(ctx, &karpv1.NodeClaim{}), f.watchPool(ctx, &corev1.Node{})
		settled := f.launch(ctx, 2)
		for _, claim := range settled {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		stays, ends := settled[0], settled[1]
		endsMachine := env.waitMachine(ctx, ends)
		inFlight := f.launch(ctx, 2)
		booting := lo.Map(inFlight, func(claim *karpv1.NodeClaim, _ int) *clusterv1.Machine { return env.waitMachine(ctx, claim) })

		By("cutting the network during launches")
		between := map[string]*network{connection.Workload: env.toWorkload, connection.Management: env.toManagement}[cluster]
		lost := between.losses()
		between.cut()
		DeferCleanup(between.restore)
		waiting := f.launch(ctx, 2)
		env.delete(ctx, ends)
		Eventually(ctx, func() float64 { return reachable(cluster) }).Should(BeZero(), "the metric")
		Eventually(ctx, func() time.Duration { return env.operator.Clusters.Up() }).Should(BeZero(), "an outage")
		Expect(between.losses()).To(BeNumerically(">", lost))
		if cluster == connection.Management { // in the other case, the operator cannot write either
			Eventually(ctx, func() string { return f.condition(ctx, v1alpha1.ConditionClusterReady).Reason }).Should(Equal(v1alpha1.ReasonClusterUnreachable))
			Expect(f.condition(ctx, v1alpha1.ConditionClusterReady).Message).To(ContainSubstring("the management cluster " + env.config.Host + " cannot be reached"))
			for _, claim := range waiting {
				Eventually(ctx, func(g Gomega) {
					g.Expect(env.get(ctx, claim)).To(Succeed())
					g.Expect(claim.StatusConditions().Get(karpv1.ConditionTypeLaunched).Reason).To(Equal(v1alpha1.ReasonClusterUnreachable))
				}).Should(Succeed())
			}
		}
		for _, machine := range booting { // what Cluster API and the provider do meanwhile
			Eventually(ctx, func() bool { return env.exists(ctx, machine) && machine.Status.NodeRef.IsDefined() }).Should(BeTrue())
		}
		Expect(slices.Concat(machines.everDeleted(), claims.everDeleted(), nodes.everDeleted())).To(BeEmpty(), "deleted during the outage")
		Expect(env.get(ctx, endsMachine)).To(Succeed())
		Expect(endsMachine.DeletionTimestamp).To(BeNil(), "the Machine of a claim that is deleted during the outage")

		By("restoring the network")
		between.restore()
		Eventually(ctx, func() float64 { return reachable(cluster) }).Should(BeEquivalentTo(1), "the metric")
		serving := sets.New[string]()
		for _, claim := range slices.Concat([]*karpv1.NodeClaim{stays}, inFlight, waiting) {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
			serving.Insert(env.waitMachine(ctx, claim).Name)
		}
		env.waitGone(ctx, ends)
		f.waitReady(ctx)
		Expect(serving).To(HaveLen(5), "each claim has its own Machine")
		Expect(serving.HasAll(names(booting)...)).To(BeTrue(), "the Machines of launches that the outage has interrupted")
		Eventually(ctx, machines.everDeleted).Should(ContainElement(endsMachine.Name), "Machines")
		// While a Machine leaves, a launch can create one more, which is spare or is deleted again (race 3 of docs/design/deletion.md).
		Expect(len(machines.everCreated())).To(BeNumerically("<=", 7), "Machines for 6 claims")
		for _, other := range lo.Without(machines.everDeleted(), endsMachine.Name) {
			Expect(k).To(Equal(machineDeployments), "only a MachineSet deletes Machine %s", other)
			Expect(env.requests.since(0, writesTo(other))).To(BeEmpty(), "requests of the operator: Machine %s is neither linked nor removed", other)
		}
		Expect(claims.everDeleted()).To(ConsistOf(ends.Name), "NodeClaims")
		Expect(nodes.everDeleted()).To(ConsistOf(ends.Status.NodeName), "Nodes")
		Expect(f.template.Status.UnavailableOfferings).To(BeEmpty())
	},
		Entry("of the management cluster", connection.Management),
		Entry("of the workload cluster", connection.Workload),
	)
})

// writesTo matches the requests that changed or deleted a Machine.
func writesTo(machine string) func(request) bool {
	return func(r request) bool {
		return r.write() && r.accepted() && strings.HasSuffix(r.path, "/machines/"+machine)
	}
}

func names(machines []*clusterv1.Machine) []string {
	return lo.Map(machines, func(m *clusterv1.Machine, _ int) string { return m.Name })
}

// watchPool watches the objects of one type that belong to the fixture's NodePool.
func (f *fixture) watchPool(ctx context.Context, object client.Object) *watch {
	GinkgoHelper()
	return newWatch(ctx, object, func(object client.Object) bool { return object.GetLabels()[karpv1.NodePoolLabelKey] == f.name })
}

// reachable returns the value of the metric for a cluster.
func reachable(cluster string) float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != "karpenter_capi_cluster_reachable" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == cluster {
				return metric.GetGauge().GetValue()
			}
		}
	}
	Fail("no metric for the cluster " + cluster)
	return 0
}
