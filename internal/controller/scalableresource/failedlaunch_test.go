// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// The claim of a failed Machine is replaced even if the mark cannot be written to the status of the
// template, and no other claim gets the same offering.
func TestAFailureThatCannotBeRecorded(t *testing.T) {
	const resource = "workers"
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "1", Generation: 1}}
	listed := fixture.Listing(template, v1alpha1.InstanceType{Name: "m5", Offerings: []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, CapacityType: "spot", Price: "1"}}})
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "claim", UID: "c", CreationTimestamp: metav1.NewTime(now), Finalizers: []string{karpv1.TerminationFinalizer},
		Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: resource},
		Labels: map[string]string{
			karpv1.NodePoolLabelKey: "pool", "node.kubernetes.io/instance-type": "m5", "topology.kubernetes.io/zone": "a", karpv1.CapacityTypeLabelKey: "spot",
		},
	}}
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: template.Name}
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	labels := map[string]string{clusterv1.ClusterNameLabel: "served", v1alpha1.TemplateLabel: template.Name}
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: resource, Labels: labels}}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "machine", UID: "m", CreationTimestamp: metav1.NewTime(now),
		Labels: map[string]string{v1alpha1.NodeClaimUIDLabel: "c", clusterv1.MachineDeploymentNameLabel: resource},
	}}
	machine.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "NotReady", Message: "InsufficientInstanceCapacity: none left"}}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "served"}}

	byLabel := func(label string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{o.GetLabels()[label]} }
	}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(template, listed, claim, deployment, machine, cluster).
		WithStatusSubresource(template, claim).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimResourceField, func(o client.Object) []string {
			return []string{o.GetAnnotations()[v1alpha1.ScalableResourceAnnotation]}
		}).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
		}).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimProviderIDField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Status.ProviderID}
		}).
		WithIndex(&clusterv1.Machine{}, clients.ResourceField, byLabel(clusterv1.MachineDeploymentNameLabel)).
		WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, byLabel(v1alpha1.NodeClaimUIDLabel)).
		WithIndex(&clusterv1.MachineSet{}, clients.ResourceField, byLabel(clusterv1.MachineDeploymentNameLabel)).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, w client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if _, isTemplate := o.(*v1alpha1.KarpenterMachineTemplate); isTemplate {
				return apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
			}
			return w.SubResource(sub).Patch(ctx, o, p, opts...)
		}}).Build()
	both := fixture.Cluster{Client: c}
	clusters := &clients.Clusters{Cluster: types.NamespacedName{Namespace: "fleet", Name: "served"}, Workload: both, Management: both}
	offered, told := catalog.New(clusters), &published{}
	r := newReconciler(clusters, offered, told, clocktesting.NewFakeClock(now.Add(time.Minute)))

	var failed int
	for range 4 {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resource}}); err != nil {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("%d reconciles failed, want the two that cannot write the mark", failed)
	}
	if len(*told) == 0 || told.reasons()[0] != "InsufficientCapacity" {
		t.Errorf("got events %v, want one of the failure", told.reasons())
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil || claim.DeletionTimestamp.IsZero() {
		t.Errorf("got %v and %+v, want that the claim is being deleted", err, claim.ObjectMeta)
	}
	instanceTypes, err := offered.InstanceTypes(t.Context(), template, now.Add(time.Minute))
	if err != nil || instanceTypes[0].Offerings[0].Available {
		t.Errorf("got %v, available %t: the next claim would get the same offering", err, instanceTypes[0].Offerings[0].Available)
	}
}

// Machines that fail together are one failure of their offering: with each failure it is unavailable for longer.
func TestClaimsThatFailTogetherAreOneFailure(t *testing.T) {
	failed := infrastructure("InsufficientInstanceCapacity")
	w := newWorld(launched("a"), launched("b"), launched("c"), machine("first", linkedTo("a"), failed), machine("second", linkedTo("b"), failed), machine("third", linkedTo("c"), failed))
	r := w.newProcess()
	for range 3 { // each step depends on what the previous one has written
		if err := reconcileOnce(t, r); err != nil {
			t.Fatal(err)
		}
	}
	marks := w.marks(t)
	if len(marks) != 1 || marks[0].Failures != 1 {
		t.Errorf("got the marks %+v, want one of one failure", marks)
	}
	for _, name := range []string{"a", "b", "c"} {
		if w.claim(t, name).DeletionTimestamp.IsZero() {
			t.Errorf("claim %s is not replaced", name)
		}
	}
}

// The offering of a failed Machine is marked, whatever the Machine has and whatever the claim has waited for.
func TestFailedOfferingIsMarked(t *testing.T) {
	failed := infrastructure("InsufficientInstanceCapacity")
	for name, tc := range map[string]struct {
		claim   func(*karpv1.NodeClaim)
		machine func(*clusterv1.Machine)
	}{
		"its Machine has no ID": {},
		"its failure was recorded, and its mark has ended": {claim: func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetFalse(v1alpha1.ConditionMachineAvailable, "InsufficientCapacity", "none left")
		}},
		"its claim has no NodePool, and was stalled before": {claim: func(c *karpv1.NodeClaim) {
			delete(c.Labels, karpv1.NodePoolLabelKey)
			c.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonResumed, "it acts again")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(*clusterv1.Machine) {}
			if tc.machine != nil {
				change = tc.machine
			}
			claim := launched("c")
			if tc.claim != nil {
				tc.claim(claim)
			}
			w := newWorld(claim, machine("m", linkedTo("c"), failed, change))
			r, told := w.newProcess(), &published{}
			r.recorder = told
			if err := reconcileOnce(t, r); err != nil {
				t.Fatal(err)
			}
			if got := w.marks(t); len(got) != 1 || got[0].InstanceType != "small" {
				t.Errorf("got the marks %+v, want one", got)
			}
			if len(*told) != 1 {
				t.Errorf("got events %v, want one of the offering", told.reasons())
			}
			if after := w.claim(t, "c"); !after.DeletionTimestamp.IsZero() || after.Labels["node.kubernetes.io/instance-type"] != "small" {
				t.Errorf("the claim has changed before the mark: %+v", after.ObjectMeta)
			}
		})
	}
}

// The mark has what the cloud answered, also if its client puts more before that than fits.
func TestMarkHasTheAnswerOfTheCloud(t *testing.T) {
	const answer = "api error InsufficientInstanceCapacity: not yet" // infrastructure adds the end
	w := newWorld(launched("c"), machine("m", linkedTo("c"), infrastructure(strings.Repeat("attempt 1, ", 30)+"api error InsufficientInstanceCapacity")))
	if err := reconcileOnce(t, w.newProcess()); err != nil {
		t.Fatal(err)
	}
	if got := w.marks(t); len(got) != 1 || got[0].Message != "… "+answer {
		t.Errorf("got the marks %+v, want one with the answer", got)
	}
}

// A failure is reported on its claim and on the Pods that wait for it, and not if the claim no longer exists.
func TestFailureIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		ended bool
		want  int // events
	}{
		"its claim exists":           {want: 2},
		"its claim no longer exists": {ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := launched("c")
			w := newWorld(claim)
			if claim = w.claim(t, "c"); tc.ended {
				w.remove(t, claim.DeepCopy())
			}
			r, told := w.newProcess(), &published{}
			r.recorder = told
			r.podsOf = func(string) []types.NamespacedName { return []types.NamespacedName{{Namespace: "default", Name: "p"}} }
			if err := r.replace(t.Context(), claim, &failure.Failure{Kind: failure.InsufficientCapacity, Message: "none left"}); precondition.IsGone(err) != tc.ended || !tc.ended && err != nil {
				t.Fatal(err)
			}
			if len(*told) != tc.want {
				t.Errorf("got events %v, want %d", *told, tc.want)
			}
		})
	}
}

// A claim whose template no longer exists is replaced when it fails: nothing can be marked.
func TestFailureWithoutATemplate(t *testing.T) {
	w := newWorld(launched("c"), machine("m", linkedTo("c"), infrastructure("InsufficientInstanceCapacity")))
	if err := w.api.Delete(t.Context(), newTemplate()); err != nil {
		t.Fatal(err)
	}
	if err := reconcileOnce(t, w.newProcess()); err != nil {
		t.Fatal(err)
	}
	if w.claim(t, "c").DeletionTimestamp.IsZero() {
		t.Error("the claim is not replaced")
	}
}
