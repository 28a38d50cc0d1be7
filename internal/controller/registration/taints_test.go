// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// If another controller restores the taints from before the registration, they are removed
// and those of the NodeClaim are added again.
func TestTaintReconciler(t *testing.T) {
	unregistered := karpv1.UnregisteredNoExecuteTaint
	own := corev1.Taint{Key: "own", Effect: corev1.TaintEffectNoSchedule}
	pool := corev1.Taint{Key: "pool", Effect: corev1.TaintEffectNoSchedule}
	startup := corev1.Taint{Key: "startup", Effect: corev1.TaintEffectNoSchedule}
	registered := map[string]string{karpv1.NodeRegisteredLabelKey: "true"}
	for name, tc := range map[string]struct {
		labels      map[string]string
		taints      []corev1.Taint
		initialized bool
		noClaim     bool
		deleting    bool
		want        []corev1.Taint
	}{
		"not registered yet":        {taints: []corev1.Taint{unregistered}, want: []corev1.Taint{unregistered}},
		"registered":                {labels: registered, taints: []corev1.Taint{own}, want: []corev1.Taint{own}},
		"registered, and undone":    {labels: registered, taints: []corev1.Taint{unregistered, own}, want: []corev1.Taint{own, pool, startup}},
		"undone after initialized":  {labels: registered, taints: []corev1.Taint{unregistered, pool}, initialized: true, want: []corev1.Taint{pool}},
		"undone, and being deleted": {labels: registered, taints: []corev1.Taint{unregistered}, deleting: true, want: []corev1.Taint{unregistered}},
		"undone, without its claim": {labels: registered, taints: []corev1.Taint{unregistered}, noClaim: true, want: []corev1.Taint{unregistered}},
		"undone, and keeping its taints": {labels: map[string]string{karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeDoNotSyncTaintsLabelKey: "true"},
			taints: []corev1.Taint{unregistered, own}, want: []corev1.Taint{own}},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: tc.labels}, Spec: corev1.NodeSpec{ProviderID: "sim://n", Taints: tc.taints}}
			if tc.deleting {
				node.DeletionTimestamp, node.Finalizers = new(metav1.Now()), []string{karpv1.TerminationFinalizer}
			}
			objects := []client.Object{node}
			if !tc.noClaim {
				claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: karpv1.NodeClaimSpec{Taints: []corev1.Taint{pool}, StartupTaints: []corev1.Taint{startup}}}
				claim.Status.ProviderID = "sim://n"
				if tc.initialized {
					claim.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
				}
				objects = append(objects, claim)
			}
			workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
				WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimProviderIDField, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).Build()
			read := &corev1.Node{}
			for range 2 { // the second reconcile must change nothing
				if err := workload.Get(t.Context(), client.ObjectKeyFromObject(node), read); err != nil {
					t.Fatal(err)
				}
				if _, err := NewTaintReconciler(workload).Reconcile(t.Context(), read); err != nil {
					t.Fatal(err)
				}
			}
			version := read.ResourceVersion
			if err := workload.Get(t.Context(), client.ObjectKeyFromObject(node), read); err != nil {
				t.Fatal(err)
			}
			if read.ResourceVersion != version {
				t.Error("it was written again")
			}
			if diff := cmp.Diff(tc.want, read.Spec.Taints); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The list of taints is replaced as a whole, so a taint that another writer adds meanwhile is not lost: its event starts
// the next reconcile. Any other error is tried again.
func TestTaintsOfOthersAreKept(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{karpv1.NodeRegisteredLabelKey: "true"}}, Spec: corev1.NodeSpec{
		ProviderID: "sim://n", Taints: []corev1.Taint{karpv1.UnregisteredNoExecuteTaint},
	}}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	claim.Status.ProviderID = "sim://n"
	var rejects error
	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(node, claim).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimProviderIDField, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if rejects != nil {
				return rejects
			}
			return c.Patch(ctx, object, patch, options...)
		}}).Build()
	read, written := &corev1.Node{}, &corev1.Node{}
	if err := workload.Get(t.Context(), client.ObjectKeyFromObject(node), read); err != nil {
		t.Fatal(err)
	}
	read.DeepCopyInto(written)
	written.Spec.Taints = append(written.Spec.Taints, corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoSchedule})
	if err := workload.Update(t.Context(), written); err != nil {
		t.Fatal(err)
	}
	if _, err := NewTaintReconciler(workload).Reconcile(t.Context(), read); err != nil {
		t.Errorf("got %v, want that the next event is awaited", err)
	}
	if err := workload.Get(t.Context(), client.ObjectKeyFromObject(node), read); err != nil || len(read.Spec.Taints) != 2 {
		t.Errorf("got the taints %v and %v", read.Spec.Taints, err)
	}
	rejects = apierrors.NewServiceUnavailable("no")
	if _, err := NewTaintReconciler(workload).Reconcile(t.Context(), read); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v, want the error of the API server", err)
	}
}
