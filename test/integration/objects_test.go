// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// get reads an object into an empty one. A plain Get would keep fields that the response lacks.
func (e *environment) get(ctx context.Context, object client.Object) error {
	fresh := reflect.New(reflect.TypeOf(object).Elem())
	if err := e.client.Get(ctx, client.ObjectKeyFromObject(object), fresh.Interface().(client.Object)); err != nil {
		return err
	}
	reflect.ValueOf(object).Elem().Set(fresh.Elem())
	return nil
}

// manyConflicts is for objects that controllers write all the time, on a busy machine.
var manyConflicts = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 0.5, Steps: 20, Cap: time.Second}

// change reads an object, changes it and writes it.
func (e *environment) change(ctx context.Context, object client.Object, change func()) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(manyConflicts, func() error {
		if err := e.get(ctx, object); err != nil {
			return err
		}
		change()
		return e.client.Update(ctx, object)
	})).To(Succeed())
}

// annotate sets an annotation of an object, or removes it if the value is nil.
func (e *environment) annotate(ctx context.Context, object client.Object, key string, value *string) {
	GinkgoHelper()
	e.change(ctx, object, func() {
		annotations := lo.Assign(object.GetAnnotations())
		delete(annotations, key)
		if value != nil {
			annotations[key] = *value
		}
		object.SetAnnotations(annotations)
	})
}

// setProviderID writes a claim's provider ID by hand.
func (e *environment) setProviderID(ctx context.Context, claim *karpv1.NodeClaim, id string) {
	GinkgoHelper()
	Expect(e.get(ctx, claim)).To(Succeed())
	before := claim.DeepCopy()
	claim.Status.ProviderID = id
	Expect(e.client.Status().Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())
}

// exists reports whether an object exists, and reads it.
func (e *environment) exists(ctx context.Context, object client.Object) bool {
	GinkgoHelper()
	err := e.get(ctx, object)
	Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
	return !apierrors.IsNotFound(err)
}

// waitGone waits until an object no longer exists.
func (e *environment) waitGone(ctx context.Context, object client.Object) {
	GinkgoHelper()
	var nudged time.Time
	Eventually(ctx, func() bool {
		exists := e.exists(ctx, object)
		if claim, ok := object.(*karpv1.NodeClaim); ok && exists && time.Since(nudged) > time.Second {
			nudged = time.Now()
			e.nudge(ctx, claim)
		}
		return exists
	}).Should(BeFalse(), "%T %s still exists", object, object.GetName())
}

// nudge makes core check immediately whether the Machine of a claim still exists. Otherwise core
// checks every five seconds, and after any event of the claim or its Node.
func (e *environment) nudge(ctx context.Context, claim *karpv1.NodeClaim) {
	GinkgoHelper()
	if len(e.machinesOf(ctx, claim)) > 0 {
		return
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"integration.test/nudge":%q}}}`, time.Now()))
	objects := []client.Object{&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim.Name}}}
	if name := claim.Status.NodeName; name != "" {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, object := range objects {
		Expect(client.IgnoreNotFound(e.client.Patch(ctx, object, patch))).To(Succeed())
	}
}

// delete deletes an object without waiting for its removal.
func (e *environment) delete(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(e.client.Delete(ctx, object)).To(Succeed())
}

// forceGone deletes an object and removes its finalizers, as impatient users do.
func (e *environment) forceGone(ctx context.Context, object client.Object) {
	GinkgoHelper()
	e.delete(ctx, object)
	Eventually(ctx, func() error {
		if !e.exists(ctx, object) {
			return nil
		}
		object.SetFinalizers(nil)
		return client.IgnoreNotFound(e.client.Update(ctx, object))
	}).Should(Succeed())
}

// waitFor waits until a condition of a claim is True, and reads the claim.
func (e *environment) waitFor(ctx context.Context, claim *karpv1.NodeClaim, condition string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(e.get(ctx, claim)).To(Succeed())
		g.Expect(claim.StatusConditions().Get(condition).IsTrue()).To(BeTrue(), "%s of NodeClaim %s", condition, claim.Name)
	}).Should(Succeed())
}

// waitProviderID waits until a claim has the given provider ID, and reads the claim.
func (e *environment) waitProviderID(ctx context.Context, claim *karpv1.NodeClaim, id string) {
	GinkgoHelper()
	Eventually(ctx, func() string { return e.providerID(ctx, claim) }).Should(Equal(id))
}

// providerID reads a claim and returns its provider ID.
func (e *environment) providerID(ctx context.Context, claim *karpv1.NodeClaim) string {
	GinkgoHelper()
	Expect(e.get(ctx, claim)).To(Succeed())
	return claim.Status.ProviderID
}

// provisionalID returns the provider ID that a claim starts with.
func provisionalID(claim *karpv1.NodeClaim) string { return planner.ProvisionalID(claim.UID) }

// machinesOf returns the Machines that are linked to a claim.
func (e *environment) machinesOf(ctx context.Context, claim *karpv1.NodeClaim) []clusterv1.Machine {
	GinkgoHelper()
	list := &clusterv1.MachineList{}
	Expect(e.client.List(ctx, list, client.MatchingLabels{v1alpha1.NodeClaimUIDLabel: string(claim.UID)})).To(Succeed())
	return list.Items
}

// waitMachine waits until exactly one live Machine is linked to a claim.
func (e *environment) waitMachine(ctx context.Context, claim *karpv1.NodeClaim) *clusterv1.Machine {
	GinkgoHelper()
	var live []clusterv1.Machine
	Eventually(ctx, func() []clusterv1.Machine {
		live = lo.Filter(e.machinesOf(ctx, claim), func(m clusterv1.Machine, _ int) bool { return m.DeletionTimestamp.IsZero() })
		return live
	}).Should(HaveLen(1), "live Machines of NodeClaim %s", claim.Name)
	Expect(live[0].Annotations).To(HaveKeyWithValue(v1alpha1.NodeClaimAnnotation, claim.Name))
	return &live[0]
}

// waitReplicas waits until the only scalable resource of a fixture has the given number of replicas
// and Machines.
func (e *environment) waitReplicas(ctx context.Context, f *fixture, want int) *scalable.Resource {
	GinkgoHelper()
	var found *scalable.Resource
	Eventually(ctx, func(g Gomega) {
		found = f.resource(ctx)
		g.Expect(found.Replicas()).To(BeEquivalentTo(want), "spec.replicas")
		g.Expect(f.machines(ctx)).To(HaveLen(want), "Machines")
	}).Should(Succeed())
	return found
}

// leftovers returns the names of all objects that were created for claims.
func (e *environment) leftovers(ctx context.Context) []string {
	GinkgoHelper()
	var found []string
	e.eachMade(ctx, func(name string, _ client.Object) { found = append(found, name) })
	return found
}

// deleteStrays deletes Nodes that never registered and whose instance no longer exists, as a cloud controller manager does. Cluster API
// leaves the Node of a Machine that is deleted before it has a nodeRef, if the infrastructure object has ended before its cache has
// the nodeRef that it has just found (cluster-api: core/reconcilers/machine/machine_controller.go, isDeleteNodeAllowed).
func (e *environment) deleteStrays(ctx context.Context) {
	GinkgoHelper()
	nodes, instances := &corev1.NodeList{}, &infrav1.SimulatedMachineList{}
	Expect(e.client.List(ctx, nodes)).To(Succeed())
	Expect(e.client.List(ctx, instances)).To(Succeed())
	exist := lo.SliceToMap(instances.Items, func(instance infrav1.SimulatedMachine) (string, bool) { return instance.Spec.ProviderID, true })
	for i := range nodes.Items {
		node := &nodes.Items[i]
		unregistered := lo.ContainsBy(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.MatchTaint(&karpv1.UnregisteredNoExecuteTaint) })
		if unregistered && !exist[node.Spec.ProviderID] {
			Expect(client.IgnoreNotFound(e.client.Delete(ctx, node))).To(Succeed())
		}
	}
}

// eachMade calls a function with all objects that were created for claims, and their kinds and
// names.
func (e *environment) eachMade(ctx context.Context, do func(name string, object client.Object)) {
	GinkgoHelper()
	for kind, list := range map[string]client.ObjectList{
		"NodeClaim":            &karpv1.NodeClaimList{},
		"Machine":              &clusterv1.MachineList{},
		"MachineSet":           &clusterv1.MachineSetList{},
		"MachineDeployment":    &clusterv1.MachineDeploymentList{},
		"MachinePool":          &clusterv1.MachinePoolList{},
		"SimulatedMachinePool": &infrav1.SimulatedMachinePoolList{},
		"Node":                 &corev1.NodeList{},
	} {
		Expect(e.client.List(ctx, list)).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			do(kind+" "+object.GetName(), object)
			return nil
		})).To(Succeed())
	}
}

// nodeOf returns the Node of a provider ID; nil if there is none.
func (e *environment) nodeOf(ctx context.Context, providerID string) *corev1.Node {
	GinkgoHelper()
	nodes := &corev1.NodeList{}
	Expect(e.client.List(ctx, nodes)).To(Succeed())
	node, found := lo.Find(nodes.Items, func(n corev1.Node) bool { return n.Spec.ProviderID == providerID })
	return lo.Ternary(found, &node, nil)
}

// uids returns the UIDs of Machines.
func uids(machines []clusterv1.Machine) []types.UID {
	return lo.Map(machines, func(m clusterv1.Machine, _ int) types.UID { return m.UID })
}

// simulated returns the simulated instance of a Machine.
func (e *environment) simulated(ctx context.Context, machine *clusterv1.Machine) *infrav1.SimulatedMachine {
	GinkgoHelper()
	instance := &infrav1.SimulatedMachine{}
	Expect(e.client.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.InfrastructureRef.Name}, instance)).To(Succeed())
	return instance
}

// provision reports a Machine's instance as provisioned when it has a provider ID, so that the
// Machine gets the ID.
func (e *environment) provision(ctx context.Context, machine *clusterv1.Machine) {
	GinkgoHelper()
	Eventually(ctx, func() string { return e.simulated(ctx, machine).Spec.ProviderID }).ShouldNot(BeEmpty())
	instance := e.simulated(ctx, machine)
	before := instance.DeepCopy()
	instance.Status.Initialization.Provisioned = new(true)
	Expect(e.client.Status().Patch(ctx, instance, client.MergeFrom(before))).To(Succeed())
}

// hold delays the removal of a deleted object until release is called or the spec ends.
func (e *environment) hold(ctx context.Context, object client.Object) (release func(context.Context)) {
	GinkgoHelper()
	const finalizer = "integration.test/hold"
	e.change(ctx, object, func() { controllerutil.AddFinalizer(object, finalizer) })
	held := object.DeepCopyObject().(client.Object)
	release = func(ctx context.Context) {
		GinkgoHelper()
		if e.exists(ctx, held) && controllerutil.ContainsFinalizer(held, finalizer) {
			e.change(ctx, held, func() { controllerutil.RemoveFinalizer(held, finalizer) })
		}
	}
	DeferCleanup(func(ctx SpecContext) { release(ctx) })
	return release
}

// versions returns the resourceVersions of everything that the operator and
// Cluster API keep for claims.
func (e *environment) versions(ctx context.Context) map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	e.eachMade(ctx, func(name string, object client.Object) { versions[name] = object.GetResourceVersion() })
	templates := &v1alpha1.KarpenterMachineTemplateList{}
	Expect(e.client.List(ctx, templates)).To(Succeed())
	for i := range templates.Items {
		versions["KarpenterMachineTemplate "+templates.Items[i].Name] = templates.Items[i].ResourceVersion
	}
	return versions
}

// waitCounted waits until the status of the template has the counts of that many claims, which are written up to 10 s after
// anything else.
func (f *fixture) waitCounted(ctx context.Context, claims int) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(env.get(ctx, f.template)).To(Succeed())
		status := &f.template.Status
		ready := lo.SumBy(status.ScalableResources, func(r v1alpha1.ScalableResourceStatus) int { return int(r.ReadyReplicas) })
		g.Expect([]int{int(status.NodeClaims), int(status.Machines), ready}).To(HaveEach(claims))
	}).Should(Succeed(), "counts in the status of template %s", f.name)
}

// waitQuiet waits until no objects of other specs are left, and nothing is written for some
// seconds.
func (e *environment) waitQuiet(ctx context.Context, f *fixture) {
	GinkgoHelper()
	Eventually(ctx, func() []karpv1.NodeClaim {
		list := &karpv1.NodeClaimList{}
		Expect(e.client.List(ctx, list)).To(Succeed())
		return lo.Reject(list.Items, func(c karpv1.NodeClaim, _ int) bool { return c.Labels[karpv1.NodePoolLabelKey] == f.name })
	}).Should(BeEmpty(), "claims of other specs")
	Eventually(ctx, func() []v1alpha1.KarpenterMachineTemplate {
		list := &v1alpha1.KarpenterMachineTemplateList{}
		Expect(e.client.List(ctx, list)).To(Succeed())
		return lo.Filter(list.Items, func(template v1alpha1.KarpenterMachineTemplate, _ int) bool {
			return !template.DeletionTimestamp.IsZero()
		})
	}).Should(BeEmpty(), "templates of other specs, which wait up to 30 s for the end of their copies")
	var before, now map[string]string
	Eventually(ctx, func() map[string]string {
		before, now = now, e.versions(ctx)
		return before
	}).WithPolling(still).Should(WithTransform(func(map[string]string) bool { return maps.Equal(before, now) }, BeTrue()), "objects that are written all the time")
}
