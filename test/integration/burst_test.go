// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/rotation"
)

var _ = forEachKind("Many claims at once", func(k kind) {
	It("get a Machine each, in the order of their creation, with few writes of replicas", func(ctx SpecContext) {
		count := 30
		if rotation.All() {
			count = 100 // Each takes half a second of processor time.
		}
		f := k.newFixture("burst").delays(0, 0, never).createReady(ctx)
		machines, mark := f.watchMachines(ctx), env.requests.mark()
		f.launch(ctx, count)

		var claims []karpv1.NodeClaim
		Eventually(ctx, func() []karpv1.NodeClaim {
			claims = f.all(ctx)
			return lo.Filter(claims, func(c karpv1.NodeClaim, _ int) bool { return strings.HasPrefix(c.Status.ProviderID, "sim://") })
		}).WithPolling(time.Second).Should(HaveLen(count))
		f.caughtUp(ctx)
		Expect(machines.everCreated()).To(HaveLen(count), "Machines ever created")
		Expect(machines.everDeleted()).To(BeEmpty())

		resource := f.resource(ctx)
		writes := env.requests.since(mark, func(r request) bool {
			return r.write() && r.accepted() && strings.HasSuffix(r.path, "s/"+resource.GetName())
		})
		if k == machinePools {
			// It is created without replicas, and Cluster API also writes its spec.
			Expect(len(writes)).To(BeNumerically("<=", raises(claims)), "writes of the MachinePool after its creation: %v", writes)
		} else {
			Expect(resource.GetGeneration()).To(BeNumerically("<=", raises(claims)), "writes of the MachineDeployment's spec, including its creation")
			Expect(writes).To(HaveLen(int(resource.GetGeneration())-1), "requests that change the MachineDeployment")
		}

		serving := map[types.UID]clusterv1.Machine{}
		for _, machine := range f.machines(ctx) {
			serving[lifecycle.ClaimUID(&machine)] = machine
		}
		Expect(serving).To(HaveLen(count), "claims that a Machine is linked to")
		for _, claim := range claims {
			Expect(claim.Status.ProviderID).To(Equal(serving[claim.UID].Spec.ProviderID))
		}
		expectOrder(claims, serving)
	})
})

// raises returns the maximum number of writes of replicas for claims: the operator raises them once a second
// (scalableresource: minPace), as long as claims are launched.
func raises(claims []karpv1.NodeClaim) int {
	launched := lo.Map(claims, func(claim karpv1.NodeClaim, _ int) time.Time {
		return claim.StatusConditions().Get(karpv1.ConditionTypeLaunched).LastTransitionTime.Time
	})
	return 3 + int(lo.Latest(launched...).Sub(lo.Earliest(launched...))/time.Second)
}

// expectOrder expects that no claim got a younger Machine than a younger claim, if both were
// launched before that Machine existed.
func expectOrder(claims []karpv1.NodeClaim, serving map[types.UID]clusterv1.Machine) {
	GinkgoHelper()
	slices.SortFunc(claims, func(a, b karpv1.NodeClaim) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i, older := range claims {
		launched := older.StatusConditions().Get(karpv1.ConditionTypeLaunched).LastTransitionTime
		for _, younger := range claims[i+1:] {
			mine, its := serving[older.UID], serving[younger.UID]
			if its.CreationTimestamp.After(launched.Time) {
				Expect(mine.CreationTimestamp.Time).NotTo(BeTemporally(">", its.CreationTimestamp.Time),
					"NodeClaim %s has Machine %s, and the younger %s has the older %s", older.Name, mine.Name, younger.Name, its.Name)
			}
		}
	}
}
