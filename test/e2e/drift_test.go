// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// Karpenter replaces exactly the Nodes that a change concerns, within its budget, and no Deployment has fewer Pods than
// its PodDisruptionBudget allows. A control plane is upgraded while Pods wait.
func TestDrift(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{})
	g := NewWithT(t)
	setControlPlane(ctx, g, s, "v1.36.0", "")
	run := &drift{s: s, w: newObserver(ctx, t, s)}
	create(ctx, g, s, kinds.MachineDeployment, "drift.yaml")
	run.expectRunning(ctx, g, map[string]int{"small": 4, "large": 3})
	g.Expect(run.versions(ctx, g)).To(Equal(map[string]int{"v1.36.0": 7}), "the versions of the Machines")

	for _, step := range []struct {
		name string
		run  func(context.Context, *WithT)
	}{
		{"a price and labels", run.changeInPlace},
		{"a patch for one instance type", run.patchOneType},
		{"a disruption budget keeps outdated Nodes", run.hold},
		{"another release has computed the hashes", run.raiseHashVersion},
		{"an edit makes the template invalid", run.spoil},
		{"the control plane is upgraded", run.upgrade},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			g := NewWithT(t)
			step.run(ctx, g)
			g.Expect(run.w.budgetsEverBroken()).To(BeEmpty(), "PodDisruptionBudgets that had too few Pods")
			g.Expect(run.w.mostDisruptedEver()).To(BeNumerically("<=", 2), "NodeClaims that were replaced at once")
			g.Expect(run.w.everMarked()).To(BeEmpty(), "unavailable offerings")
			g.Expect(run.w.everFailed()).To(BeEmpty(), "NodeClaims that have failed")
		}) {
			return
		}
	}
}

// drift is a stack with drift.yaml.
type drift struct {
	s *stack.Stack
	w *observer
}

// changeInPlace changes what replaces no Node: prices, and labels that Machines get in place.
func (r *drift) changeInPlace(ctx context.Context, g *WithT) {
	before := r.claimsOf(ctx, g, "")
	r.editCatalog(ctx, g, func(spec *v1alpha1.InstanceTypeCatalogSpec) {
		spec.InstanceTypes[0].Offerings[0].Price = "0.02"
		spec.InstanceTypes[1].Offerings[0].Price = "0.01"
	})
	r.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
		spec.Template.Metadata.Labels["team"] = "other"
	})
	g.Eventually(ctx, func(g Gomega) {
		machines := &clusterv1.MachineList{}
		g.Expect(r.s.Management.List(ctx, machines)).To(Succeed())
		for _, machine := range machines.Items {
			g.Expect(machine.Labels).To(HaveKeyWithValue("team", "other"), "the labels of Machine %s", machine.Name)
		}
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	r.expectCurrent(ctx, g)
	g.Expect(r.claimsOf(ctx, g, "")).To(Equal(before))
	g.Expect(r.w.everDrifted()).To(BeEmpty())
}

// patchOneType adds a patch for one instance type, whose Nodes are replaced.
func (r *drift) patchOneType(ctx context.Context, g *WithT) {
	small, large := r.claimsOf(ctx, g, "small"), r.claimsOf(ctx, g, "large")
	r.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
		spec.Patches = []v1alpha1.Patch{slower("1100ms", `{{ eq .instanceType "small" }}`)}
	})
	r.expectReplaced(ctx, g, "small", small)
	r.expectCurrent(ctx, g)
	g.Expect(r.claimsOf(ctx, g, "large")).To(Equal(large))
	drifted := r.w.everDrifted()
	g.Expect(lo.Keys(drifted)).To(ConsistOf(lo.ToAnySlice(small)...))
	g.Expect(lo.Uniq(lo.Values(drifted))).To(ConsistOf(v1alpha1.DriftInfrastructure))
}

// slower returns a patch that changes how long a machine takes.
func slower(duration, enabledIf string) v1alpha1.Patch {
	return v1alpha1.Patch{Target: v1alpha1.PatchTargetInfrastructure, EnabledIf: enabledIf, JSONPatches: []v1alpha1.JSONPatch{{
		Op: "replace", Path: "/spec/template/spec/delays/providerID/duration", Value: &apiextensionsv1.JSON{Raw: []byte(strconv.Quote(duration))},
	}}}
}

// hold changes one instance type while a disruption budget allows no drift: its Nodes stay until that budget is removed.
func (r *drift) hold(ctx context.Context, g *WithT) {
	before, small, large, drifted := r.claimsOf(ctx, g, ""), r.claimsOf(ctx, g, "small"), r.claimsOf(ctx, g, "large"), r.w.everDrifted()
	var budgets []karpv1.Budget
	r.editDisruption(ctx, g, func(disruption *karpv1.Disruption) {
		budgets = disruption.Budgets
		disruption.Budgets = append(slices.Clone(budgets), karpv1.Budget{Nodes: "0", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionReasonDrifted}})
	})
	r.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
		spec.Patches = append(spec.Patches, slower("1200ms", `{{ eq .instanceType "large" }}`))
	})
	r.expectCondition(ctx, g, v1alpha1.ConditionNodesCurrent, false, "3 of 7 Nodes", v1alpha1.DriftInfrastructure+" 3")
	g.Eventually(ctx, func(g Gomega) {
		published := &corev1.EventList{}
		g.Expect(r.s.Workload.List(ctx, published, client.MatchingFields{"reason": events.DisruptionBlocked})).To(Succeed())
		g.Expect(published.Items).To(ContainElement(And(
			HaveField("InvolvedObject.Kind", "NodePool"), HaveField("Message", ContainSubstring("reason Drifted")))), "Karpenter considered outdated Nodes")
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	g.Expect(r.claimsOf(ctx, g, "")).To(Equal(before))
	r.expectCondition(ctx, g, v1alpha1.ConditionNodesCurrent, false, "3 of 7 Nodes")

	r.editDisruption(ctx, g, func(disruption *karpv1.Disruption) { disruption.Budgets = budgets })
	r.expectReplaced(ctx, g, "large", large)
	r.expectCurrent(ctx, g)
	g.Expect(r.claimsOf(ctx, g, "small")).To(Equal(small))
	g.Expect(lo.Keys(lo.OmitByKeys(r.w.everDrifted(), lo.Keys(drifted)))).To(ConsistOf(lo.ToAnySlice(large)...))
}

// raiseHashVersion gives all NodeClaims the hashes of another release, which are renewed.
func (r *drift) raiseHashVersion(ctx context.Context, g *WithT) {
	before, drifted := r.claimsOf(ctx, g, ""), r.w.everDrifted()
	claims := &karpv1.NodeClaimList{}
	g.Expect(r.s.Workload.List(ctx, claims)).To(Succeed())
	hashes := map[string]string{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		hashes[claim.Name] = claim.Annotations[v1alpha1.MachineHashesAnnotation]
		changed := claim.DeepCopy()
		// Of another version, and with other content.
		changed.Annotations[v1alpha1.MachineHashesAnnotation] = strings.ReplaceAll(hashes[claim.Name], "v1-", "v0-0")
		g.Expect(r.s.Workload.Patch(ctx, changed, client.MergeFrom(claim))).To(Succeed())
	}
	g.Eventually(ctx, func(g Gomega) {
		g.Expect(r.s.Workload.List(ctx, claims)).To(Succeed())
		for _, claim := range claims.Items {
			g.Expect(claim.Annotations).To(HaveKeyWithValue(v1alpha1.MachineHashesAnnotation, hashes[claim.Name]), "NodeClaim %s", claim.Name)
		}
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	r.expectCurrent(ctx, g)
	g.Expect(r.claimsOf(ctx, g, "")).To(Equal(before))
	g.Expect(r.w.everDrifted()).To(Equal(drifted))
}

// spoil makes an edit of the template that is wrong: nothing drifts, new launches wait, and the correction takes
// effect.
func (r *drift) spoil(ctx context.Context, g *WithT) {
	before, drifted := r.claimsOf(ctx, g, ""), r.w.everDrifted()
	r.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) { spec.Template.Spec.InfrastructureRef.Name = "none" })
	r.expectCondition(ctx, g, v1alpha1.ConditionInfrastructureReady, false, "SimulatedMachineTemplate default/none does not exist")
	g.Eventually(ctx, func(g Gomega) {
		pool := &karpv1.NodePool{}
		g.Expect(r.s.Workload.Get(ctx, client.ObjectKey{Name: "drift"}, pool)).To(Succeed())
		g.Expect(pool.StatusConditions().Get(karpv1.ConditionTypeNodeClassReady).IsFalse()).To(BeTrue(), "Karpenter launches nothing for the NodePool")
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	scalePods(ctx, g, r.s, "large", 4)
	g.Eventually(ctx, func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(r.s.Workload.List(ctx, pods, client.MatchingLabels{"app": "large"})).To(Succeed())
		waiting := lo.CountBy(pods.Items, func(pod corev1.Pod) bool {
			return lo.ContainsBy(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
			})
		})
		g.Expect(waiting).To(Equal(1), "Pods that wait for a Node")
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	g.Expect(r.claimsOf(ctx, g, "")).To(Equal(before))
	g.Expect(r.w.everDrifted()).To(Equal(drifted))

	r.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) { spec.Template.Spec.InfrastructureRef.Name = "drift" })
	r.expectRunning(ctx, g, map[string]int{"small": 4, "large": 4})
	r.expectCurrent(ctx, g)
	g.Expect(r.claimsOf(ctx, g, "")).To(ContainElements(lo.ToAnySlice(before)...))
	g.Expect(r.w.everDrifted()).To(Equal(drifted))
}

// upgrade upgrades the control plane while Pods wait, for longer than launchTimeoutSeconds.
func (r *drift) upgrade(ctx context.Context, g *WithT) {
	before, drifted := r.claimsOf(ctx, g, ""), r.w.everDrifted()
	setControlPlane(ctx, g, r.s, "v1.37.0", "v1.36.0")
	scalePods(ctx, g, r.s, "small", 7)
	waiting := &standstill{s: r.s, w: r.w}
	waiting.expectWaiting(ctx, g, 3, launchTimeout+5*time.Second)
	r.expectCondition(ctx, g, v1alpha1.ConditionVersionReady, true, "v1.37.0", "is being upgraded from v1.36.0")
	g.Expect(r.w.everDrifted()).To(Equal(drifted))

	setControlPlane(ctx, g, r.s, "v1.37.0", "")
	r.expectRunning(ctx, g, map[string]int{"small": 7, "large": 4})
	g.Eventually(ctx, func(g Gomega) {
		g.Expect(r.versions(ctx, g)).To(Equal(map[string]int{"v1.37.0": 11}), "the versions of the Machines")
	}).WithTimeout(6 * time.Minute).WithPolling(poll).Should(Succeed())
	r.expectRunning(ctx, g, map[string]int{"small": 7, "large": 4})
	r.expectCurrent(ctx, g)
	replaced := lo.OmitByKeys(r.w.everDrifted(), lo.Keys(drifted))
	g.Expect(lo.Keys(replaced)).To(ConsistOf(lo.ToAnySlice(before)...), "the Nodes of the version before, and no other")
	g.Expect(lo.Uniq(lo.Values(replaced))).To(ConsistOf(v1alpha1.DriftVersion))
}

// edit changes the template.
func (r *drift) edit(ctx context.Context, g *WithT, change func(*v1alpha1.KarpenterMachineTemplateSpec)) {
	template := &v1alpha1.KarpenterMachineTemplate{}
	r.patch(ctx, g, template, func() { change(&template.Spec) })
}

// editCatalog changes the catalog of the template.
func (r *drift) editCatalog(ctx context.Context, g *WithT, change func(*v1alpha1.InstanceTypeCatalogSpec)) {
	catalog := &v1alpha1.InstanceTypeCatalog{}
	r.patch(ctx, g, catalog, func() { change(&catalog.Spec) })
}

// editDisruption changes how Karpenter disrupts Nodes of the NodePool.
func (r *drift) editDisruption(ctx context.Context, g *WithT, change func(*karpv1.Disruption)) {
	pool := &karpv1.NodePool{}
	r.patch(ctx, g, pool, func() { change(&pool.Spec.Disruption) })
}

// patch reads an object of the test, and writes what change does to it.
func (r *drift) patch(ctx context.Context, g *WithT, object client.Object, change func()) {
	g.Expect(r.s.Workload.Get(ctx, client.ObjectKey{Name: "drift"}, object)).To(Succeed())
	before := object.DeepCopyObject().(client.Object)
	change()
	g.Expect(r.s.Workload.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// claimsOf returns the names of the NodeClaims of an instance type, or of all, that are not being deleted.
func (r *drift) claimsOf(ctx context.Context, g Gomega, instanceType string) []string {
	claims := &karpv1.NodeClaimList{}
	g.Expect(r.s.Workload.List(ctx, claims)).To(Succeed())
	names := lo.FilterMap(claims.Items, func(claim karpv1.NodeClaim, _ int) (string, bool) {
		return claim.Name, claim.DeletionTimestamp.IsZero() && (instanceType == "" || claim.Labels[corev1.LabelInstanceTypeStable] == instanceType)
	})
	slices.Sort(names)
	return names
}

// versions returns how many Machines each version has.
func (r *drift) versions(ctx context.Context, g Gomega) map[string]int {
	machines := &clusterv1.MachineList{}
	g.Expect(r.s.Management.List(ctx, machines)).To(Succeed())
	return lo.CountValuesBy(machines.Items, func(machine clusterv1.Machine) string { return machine.Spec.Version })
}

// expectReplaced waits until an instance type has as many NodeClaims with Nodes as before, none of them from before.
func (r *drift) expectReplaced(ctx context.Context, g *WithT, instanceType string, before []string) {
	g.Eventually(ctx, func(g Gomega) {
		now := r.claimsOf(ctx, g, instanceType)
		g.Expect(now).To(HaveLen(len(before)))
		g.Expect(lo.Intersect(now, before)).To(BeEmpty(), "NodeClaims from before")
	}).WithTimeout(5 * time.Minute).WithPolling(poll).Should(Succeed())
	r.expectRunning(ctx, g, map[string]int{"small": 4, "large": 3})
}

// expectRunning waits until so many Pods of each app run, each with its own Node.
func (r *drift) expectRunning(ctx context.Context, g *WithT, pods map[string]int) {
	g.Eventually(ctx, func(g Gomega) {
		for app, count := range pods {
			running, err := runningPods(ctx, r.s, app)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(running).To(Equal(count), "Pods of %s that run", app)
		}
		found, err := whatExists(ctx, r.s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Settled(lo.Sum(lo.Values(pods)))).To(BeTrue(), "the existing objects: %s", found)
	}).WithTimeout(3 * time.Minute).WithPolling(poll).Should(Succeed())
}

// expectCurrent waits until the operator has compared all Nodes with the present template, and none differs.
func (r *drift) expectCurrent(ctx context.Context, g *WithT) {
	r.expectCondition(ctx, g, v1alpha1.ConditionNodesCurrent, true)
}

// expectCondition waits until the template has a condition for its present generation, with texts in its message.
func (r *drift) expectCondition(ctx context.Context, g *WithT, kind string, is bool, texts ...string) {
	g.Eventually(ctx, func(g Gomega) {
		template := &v1alpha1.KarpenterMachineTemplate{}
		g.Expect(r.s.Workload.Get(ctx, client.ObjectKey{Name: "drift"}, template)).To(Succeed())
		condition := template.StatusConditions().Get(kind)
		g.Expect(condition).NotTo(BeNil(), kind)
		g.Expect(condition.ObservedGeneration).To(Equal(template.Generation), kind)
		g.Expect(condition.IsTrue()).To(Equal(is), "%s: %s", kind, condition.Message)
		for _, text := range texts {
			g.Expect(condition.Message).To(ContainSubstring(text))
		}
	}).WithTimeout(2 * time.Minute).WithPolling(poll).Should(Succeed())
}
