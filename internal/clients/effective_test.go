// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// recorder returns a client that sends nothing, and records the data of patches and whether they are of the status.
func recorder(sent *[]string, answer error) client.Client {
	record := func(of string, object client.Object, patch client.Patch) error {
		data, err := patch.Data(object)
		*sent = append(*sent, of+" "+string(data))
		return errors.Join(err, answer)
	}
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
			return record("object", object, patch)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, of string, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			return record(of, object, patch)
		},
	})
}

// Of a change, only the patches are sent that change something: that of the object, that of the status, both or none.
func TestEffective(t *testing.T) {
	stored := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "c", ResourceVersion: "7", Finalizers: []string{karpv1.TerminationFinalizer}, Labels: map[string]string{"a": "1"},
	}}
	stored.Status.ProviderID, stored.Status.ImageID = "nodeclaim://c", "i"
	for name, tc := range map[string]struct {
		change         func(*karpv1.NodeClaim)
		object, status string // the data that is sent without a lock; empty for none
		// lockedObject and lockedStatus are the data with a lock.
		lockedObject, lockedStatus string
	}{
		"nothing": {change: func(*karpv1.NodeClaim) {}},
		"a label": {
			change: func(c *karpv1.NodeClaim) { c.Labels["a"] = "2" },
			object: `{"metadata":{"labels":{"a":"2"}}}`, lockedObject: `{"metadata":{"labels":{"a":"2"},"resourceVersion":"7"}}`,
		},
		"the last finalizer": {
			change: func(c *karpv1.NodeClaim) { c.Finalizers = nil },
			object: `{"metadata":{"finalizers":null}}`, lockedObject: `{"metadata":{"finalizers":null,"resourceVersion":"7"}}`,
		},
		"the spec": {
			change: func(c *karpv1.NodeClaim) {
				c.Spec.Taints = []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}
			},
			object: `{"spec":{"taints":[{"effect":"NoSchedule","key":"t"}]}}`, lockedObject: `{"metadata":{"resourceVersion":"7"},"spec":{"taints":[{"effect":"NoSchedule","key":"t"}]}}`,
		},
		"the status": {
			change: func(c *karpv1.NodeClaim) { c.Status.NodeName = "n" },
			status: `{"status":{"nodeName":"n"}}`, lockedStatus: `{"metadata":{"resourceVersion":"7"},"status":{"nodeName":"n"}}`,
		},
		"a field of the status is removed": {
			change: func(c *karpv1.NodeClaim) { c.Status.ImageID = "" },
			status: `{"status":{"imageID":null}}`, lockedStatus: `{"metadata":{"resourceVersion":"7"},"status":{"imageID":null}}`,
		},
		"both": {
			change: func(c *karpv1.NodeClaim) { c.Labels["a"], c.Status.NodeName = "2", "n" },
			object: `{"metadata":{"labels":{"a":"2"}},"status":{"nodeName":"n"}}`, status: `{"metadata":{"labels":{"a":"2"}},"status":{"nodeName":"n"}}`,
			lockedObject: `{"metadata":{"labels":{"a":"2"},"resourceVersion":"7"},"status":{"nodeName":"n"}}`,
			lockedStatus: `{"metadata":{"labels":{"a":"2"},"resourceVersion":"7"},"status":{"nodeName":"n"}}`,
		},
	} {
		for lock, patch := range map[string]client.Patch{
			"no lock": client.MergeFrom(stored),
			"lock":    client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}),
		} {
			t.Run(name+", "+lock, func(t *testing.T) {
				want := []string{}
				object, status := tc.object, tc.status
				if lock == "lock" {
					object, status = tc.lockedObject, tc.lockedStatus
				}
				if object != "" {
					want = append(want, "object "+object)
				}
				if status != "" {
					want = append(want, "status "+status)
				}
				changed, sent := stored.DeepCopy(), []string{}
				tc.change(changed)
				kept := changed.DeepCopy()
				c := Effective(recorder(&sent, nil))
				if err := errors.Join(c.Patch(t.Context(), changed, patch), c.Status().Patch(t.Context(), changed, patch)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, sent); diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(kept, changed); diff != "" {
					t.Errorf("the object has changed (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// Before a claim is launched, only the lifecycle controller writes its status, which has no precondition.
func TestEffectiveBeforeTheLaunch(t *testing.T) {
	lock := client.MergeFromWithOptimisticLock{}
	for name, tc := range map[string]struct {
		stored  func(*karpv1.NodeClaim)
		options []client.MergeFromOption
		want    int
	}{
		"of the lifecycle controller":      {stored: func(*karpv1.NodeClaim) {}, want: 1},
		"of another controller":            {stored: func(*karpv1.NodeClaim) {}, options: []client.MergeFromOption{lock}},
		"of another controller, launched":  {stored: func(c *karpv1.NodeClaim) { c.Status.ProviderID = "nodeclaim://c" }, options: []client.MergeFromOption{lock}, want: 1},
		"of a claim that is being deleted": {stored: func(c *karpv1.NodeClaim) { c.DeletionTimestamp = new(metav1.Now()) }, options: []client.MergeFromOption{lock}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			stored, sent := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "7"}}, []string{}
			tc.stored(stored)
			changed := stored.DeepCopy()
			changed.StatusConditions() // adds all conditions
			if err := Effective(recorder(&sent, nil)).Status().Patch(t.Context(), changed, client.MergeFromWithOptions(stored, tc.options...)); err != nil || len(sent) != tc.want {
				t.Errorf("got %v and %v, want %d patches", err, sent, tc.want)
			}
		})
	}
}

// The label of the NodeClass alone is not sent for a Node that the registration will give all labels.
func TestEffectiveBeforeTheRegistration(t *testing.T) {
	const class = "karpenter.cluster.x-k8s.io/karpentermachinetemplate"
	for name, tc := range map[string]struct {
		registered bool
		change     func(*corev1.Node)
		want       int
	}{
		"the label":             {change: func(n *corev1.Node) { n.Labels[class] = "t" }},
		"the label, registered": {registered: true, change: func(n *corev1.Node) { n.Labels[class] = "t" }, want: 1},
		"another label, too":    {change: func(n *corev1.Node) { n.Labels[class], n.Labels["a"] = "t", "b" }, want: 1},
		"another label":         {change: func(n *corev1.Node) { n.Labels["a"] = "b" }, want: 1},
		"an annotation, too":    {change: func(n *corev1.Node) { n.Labels[class], n.Annotations = "t", map[string]string{"a": "b"} }, want: 1},
		"a taint, too":          {change: func(n *corev1.Node) { n.Labels[class], n.Spec.Taints = "t", []corev1.Taint{{Key: "a"}} }, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			stored, sent := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"x": "y"}}}, []string{}
			if tc.registered {
				stored.Labels[karpv1.NodeRegisteredLabelKey] = "true"
			}
			changed := stored.DeepCopy()
			tc.change(changed)
			if err := Effective(recorder(&sent, nil)).Patch(t.Context(), changed, client.MergeFrom(stored)); err != nil || len(sent) != tc.want {
				t.Errorf("got %v and %v, want %d patches", err, sent, tc.want)
			}
		})
	}
}

// Other kinds, other patches and patches with options are sent as they are, and so are their errors.
func TestEffectiveSendsAllOthers(t *testing.T) {
	claim, node := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		object  client.Object
		patch   client.Patch
		options []client.PatchOption
		want    string
	}{
		"another kind":    {object: node, patch: client.MergeFrom(node), want: "{}"},
		"strategic merge": {object: node, patch: client.StrategicMergeFrom(node), want: "{}"},
		"JSON patch":      {object: claim, patch: client.RawPatch("application/json-patch+json", []byte("[]")), want: "[]"},
		"a dry run":       {object: claim, patch: client.MergeFrom(claim), options: []client.PatchOption{client.DryRunAll}, want: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			err := Effective(recorder(&sent, refused)).Patch(t.Context(), tc.object, tc.patch, tc.options...)
			if diff := cmp.Diff([]string{"object " + tc.want}, sent); diff != "" || !errors.Is(err, refused) {
				t.Errorf("%v\nsent (-want +got):\n%s", err, diff)
			}
		})
	}
}
