// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
)

// The spec deletes the Cluster that all specs of a process share, and creates it again.
var _ = Describe("A Cluster that is being deleted", long, func() {
	It("gets no new Machines, marks no offerings, and does not wait for this operator", func(ctx SpecContext) {
		Eventually(ctx, env.leftovers).Should(BeEmpty(), "objects of other specs")
		deployments, pools := machineDeployments.newFixture("ending").breaks(history.WrongDelete).createReady(ctx), machinePools.newFixture("ending").breaks(history.WrongDelete).createReady(ctx)
		handedOver := machinePools.newFixture("handedover").breaks(history.WrongDelete).createReady(ctx)
		DeferCleanup(func(ctx context.Context) {
			env.createCluster(ctx)
			deployments.waitReady(ctx)
		})

		By("launching claims that become Nodes, and then claims whose Machines never appear")
		var registered, waiting []*karpv1.NodeClaim
		for _, f := range []*fixture{deployments, pools} {
			registered = append(registered, f.launch(ctx, 2)...)
		}
		registered = append(registered, handedOver.launchOne(ctx))
		for _, claim := range registered {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		for _, f := range []*fixture{deployments, pools} {
			maker := f.maker(ctx)
			env.annotate(ctx, maker, clusterv1.PausedAnnotation, new(""))
			DeferCleanup(func(ctx context.Context) {
				if env.exists(ctx, maker) {
					env.annotate(ctx, maker, clusterv1.PausedAnnotation, nil)
				}
			})
			waiting = append(waiting, f.launchOne(ctx), f.launchAlone(ctx))
			Eventually(ctx, func() int32 { return f.resource(ctx).Replicas() }).Should(BeEquivalentTo(4))
		}
		By("letting another controller set the replicas of a MachinePool, whose Machine has a pre-terminate hook")
		Expect(env.waitMachine(ctx, registered[4]).Annotations).To(HaveKey(v1alpha1.TerminateHookAnnotation))
		env.annotate(ctx, handedOver.resource(ctx).API(), clusterv1.ReplicasManagedByAnnotation, new("another"))

		By("deleting the Cluster")
		mark := env.requests.mark()
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
		env.delete(ctx, cluster)
		for _, f := range []*fixture{deployments, pools} {
			f.waitNotReady(ctx, v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterDeleting, "Cluster fleet/served is being deleted", "--cluster-name")
		}
		for _, claim := range waiting {
			env.waitGone(ctx, claim)
			Eventually(ctx, func() []string { return env.events(ctx, "NodeClaim", claim.Name, v1alpha1.ReasonClusterDeleting) }).
				Should(ContainElement(ContainSubstring("Cluster fleet/served is being deleted")))
		}
		refused := deployments.launchOne(ctx)
		env.waitGone(ctx, refused)

		By("letting Cluster API delete its objects")
		for _, f := range []*fixture{deployments, pools} {
			env.annotate(ctx, f.maker(ctx), clusterv1.PausedAnnotation, nil)
		}
		for _, claim := range registered {
			env.waitGone(ctx, claim)
		}
		env.waitGone(ctx, cluster)
		// If a Cluster is deleted, neither Cluster API nor Karpenter deletes Nodes that join and are never registered.
		nodes := &corev1.NodeList{}
		Expect(env.client.List(ctx, nodes)).To(Succeed())
		for i := range nodes.Items {
			if strings.HasPrefix(nodes.Items[i].Name, "ending-") {
				env.forceGone(ctx, &nodes.Items[i])
			}
		}
		deployments.waitNotReady(ctx, v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterDeleted, "fleet/served was deleted")
		Expect(cloudprovider.IsNodeClaimNotFoundError(env.cloudProvider().Delete(ctx, waiting[0]))).To(BeTrue(), "a claim of a Cluster that was deleted has no Machine")

		Expect(env.requests.since(mark, creates)).To(BeEmpty(), "what was created in the Cluster")
		Expect(env.requests.since(mark, func(r request) bool { return replicasIn(r) > 4 })).To(BeEmpty(), "raised replicas")
		for _, f := range []*fixture{deployments, pools, handedOver} {
			Expect(f.failures(ctx, instanceType)).To(BeEmpty(), "marks of the offering of %s", f.name)
		}

		By("creating a Cluster with the same name")
		env.createCluster(ctx)
		deployments.waitReady(ctx)
		env.waitFor(ctx, deployments.launchOne(ctx), karpv1.ConditionTypeInitialized)
	})
})

// launchAlone creates a claim without a NodePool, and waits until it is launched.
func (f *fixture) launchAlone(ctx context.Context) *karpv1.NodeClaim {
	GinkgoHelper()
	claim := f.newClaim()
	delete(claim.Labels, karpv1.NodePoolLabelKey)
	Expect(env.client.Create(ctx, claim)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(env.client.Delete(ctx, claim))).To(Succeed())
	})
	env.waitFor(ctx, claim, karpv1.ConditionTypeLaunched)
	return claim
}

// creates reports whether a request created a scalable resource, or what such a resource
// refers to.
func creates(r request) bool {
	collection := lo.LastOrEmpty(strings.Split(r.path, "/"))
	return r.method == http.MethodPost && !r.dryRun && r.accepted() &&
		lo.Contains([]string{"machinedeployments", "machinepools", "simulatedmachinetemplates", "simulatedmachinepools"}, collection)
}

var replicasOf = regexp.MustCompile(`"replicas":(\d+)`)

// replicasIn returns the replicas that a request writes; zero if none.
func replicasIn(r request) int {
	found := replicasOf.FindStringSubmatch(r.body)
	if found == nil || !r.write() {
		return 0
	}
	replicas, err := strconv.Atoi(found[1])
	Expect(err).NotTo(HaveOccurred())
	return replicas
}
