// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	infrastructure "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/controller"
)

// deadlock is a condition that the node problem detector sets, and for which there is a repair policy.
const deadlock = "KernelDeadlock"

// checkHealth creates a MachineHealthCheck for the Machines of a fixture whose Node has the condition.
func (f *fixture) checkHealth(ctx context.Context) {
	GinkgoHelper()
	check := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: f.name},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: served.Name,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TemplateLabel: f.name}},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: deadlock, Status: corev1.ConditionTrue, TimeoutSeconds: new(int32(0))},
			}},
		},
	}
	Expect(env.client.Create(ctx, check)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { env.delete(ctx, check) })
}

// setCondition sets a condition of the Node of a claim, which a controller of the test does not change back.
func (e *environment) setCondition(ctx context.Context, claim *karpv1.NodeClaim, kind corev1.NodeConditionType, status corev1.ConditionStatus) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Status.NodeName}}
	e.annotate(ctx, node, infrastructure.KwokAnnotation, nil)
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Test","lastTransitionTime":%q}]}}`, kind, status, time.Now().UTC().Format(time.RFC3339))
	Expect(e.client.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, patch))).To(Succeed())
}

// remediation returns the reason of the condition with which a MachineSet reports what it does with an unhealthy Machine.
func (e *environment) remediation(ctx context.Context, machine *clusterv1.Machine) string {
	GinkgoHelper()
	if !e.exists(ctx, machine) {
		return ""
	}
	return conditions.GetReason(machine, clusterv1.MachineOwnerRemediatedCondition)
}

// ending returns how many of the claims are being deleted.
func ending(ctx context.Context, claims []*karpv1.NodeClaim) int {
	GinkgoHelper()
	return lo.CountBy(claims, func(c *karpv1.NodeClaim) bool { return env.exists(ctx, c) && !c.DeletionTimestamp.IsZero() })
}

// Cluster API's own MachineHealthCheck and MachineSet, with Karpenter's drain and, in the second spec, its repair. No Pod
// needs another Node here, so a Machine that is created would be one that nothing has requested.
var _ = Describe("With a MachineHealthCheck", long, func() {
	It("unhealthy Machines are remediated maxInFlight at a time, each after its drain, and no other Machine is created or deleted", func(ctx SpecContext) {
		f := machineDeployments.newFixture("checked").breaks(history.WrongDelete).createReady(ctx)
		f.checkHealth(ctx)
		machines := f.watchMachines(ctx)
		claims := f.launch(ctx, 4)
		var all, sick []*clusterv1.Machine
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
			all = append(all, env.waitMachine(ctx, claim))
		}
		deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: f.resource(ctx).GetName()}}
		env.change(ctx, deployment, func() { deployment.Spec.Remediation.MaxInFlight = new(intstr.FromInt32(1)) })
		var releases []func(context.Context)
		for i := range 2 {
			_, release := env.runProtected(ctx, fmt.Sprintf("%s-%d", f.name, i), claims[i].Status.NodeName)
			releases = append(releases, release)
			sick = append(sick, all[i])
		}

		By("two become unhealthy")
		for i := range 2 {
			env.setCondition(ctx, claims[i], deadlock, corev1.ConditionTrue)
		}
		Eventually(ctx, func() []string {
			return []string{env.remediation(ctx, sick[0]), env.remediation(ctx, sick[1])}
		}).Should(ConsistOf(clusterv1.MachineSetMachineRemediationMachineDeletingReason, clusterv1.MachineSetMachineRemediationDeferredReason))
		Eventually(ctx, func() int { return ending(ctx, claims) }).Should(Equal(1), "claims that are being deleted")
		f.caughtUp(ctx)
		Expect(ending(ctx, claims)).To(Equal(1), "the other remediation is deferred, and its claim stays")
		for _, machine := range sick {
			Expect(env.exists(ctx, machine)).To(BeTrue())
			Expect(env.simulated(ctx, machine).DeletionTimestamp).To(BeNil(), "an instance that is not drained")
		}

		By("the drains succeed")
		for _, release := range releases {
			release(ctx)
		}
		for i := range 2 {
			env.waitGone(ctx, claims[i])
			Expect(env.exists(ctx, sick[i])).To(BeFalse())
		}
		env.waitReplicas(ctx, f, 2)
		f.caughtUp(ctx)
		Expect(machines.everDeleted()).To(ConsistOf(sick[0].Name, sick[1].Name))
		Expect(machines.everCreated()).To(HaveLen(4))
		for _, claim := range claims[2:] {
			Expect(env.get(ctx, claim)).To(Succeed())
			Expect(claim.DeletionTimestamp).To(BeNil())
		}
	})

	It("and the feature gate NodeRepair at the same time, a Machine is deleted once, and no other is created or deleted", func(ctx SpecContext) {
		f := machineDeployments.newFixture("both").breaks(history.WrongDelete)
		f.pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
		f.createReady(ctx)
		f.checkHealth(ctx)
		machines := f.watchMachines(ctx)
		claims := f.launch(ctx, 2)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		sick, healthy := claims[0], claims[1]
		machine := env.waitMachine(ctx, sick)
		env.setCondition(ctx, sick, deadlock, corev1.ConditionTrue)
		env.later(ctx, 11*time.Minute, sick, func(g Gomega) {
			g.Expect(apierrors.IsNotFound(env.get(ctx, sick))).To(BeTrue(), "NodeClaim %s still exists", sick.Name)
			g.Expect(f.machines(ctx)).To(HaveLen(1))
		})
		env.waitReplicas(ctx, f, 1)
		f.caughtUp(ctx)
		Expect(machines.everDeleted()).To(ConsistOf(machine.Name))
		Expect(machines.everCreated()).To(HaveLen(2))
		Expect(env.get(ctx, healthy)).To(Succeed())
		Expect(healthy.DeletionTimestamp).To(BeNil())
	})
})

var _ = Describe("A Machine with a Node whose instance no longer exists", func() {
	It("is deleted with its claim, and its Node is not drained", func(ctx SpecContext) {
		f := machineDeployments.newFixture("instancegone").breaks(history.WrongDelete).createReady(ctx)
		claims := f.launch(ctx, 2)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		gone, stays := claims[0], claims[1]
		machine := env.waitMachine(ctx, gone)
		env.runProtected(ctx, f.name, gone.Status.NodeName) // a drain would never end

		By("a user deletes its infrastructure object: the provider deletes the instance, and its kubelet does not report any more")
		env.delete(ctx, env.simulated(ctx, machine))
		env.waitGone(ctx, gone)
		Expect(env.exists(ctx, machine)).To(BeFalse())
		env.waitReplicas(ctx, f, 1)
		Expect(env.get(ctx, stays)).To(Succeed())
		Expect(stays.DeletionTimestamp).To(BeNil())
		Expect(env.get(ctx, f.template)).To(Succeed())
		Expect(f.template.Status.UnavailableOfferings).To(BeEmpty())
	})
})
