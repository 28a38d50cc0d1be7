// SPDX-License-Identifier: Apache-2.0

package precondition_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
)

// An object is written only as it was read, and the error says what could not be written.
func TestWrite(t *testing.T) {
	for name, stored := range map[string]client.Object{
		"doing x to Pod ns/p: ": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}},
		"doing x to Node n: ":   &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(stored).WithStatusSubresource(stored).Build()
			read := stored.DeepCopyObject().(client.Object)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(read), read); err != nil {
				t.Fatal(err)
			}
			changed := read.DeepCopyObject().(client.Object)
			changed.SetLabels(map[string]string{"mine": "x"})
			if err := precondition.Write(t.Context(), c, read, changed.DeepCopyObject().(client.Object), "doing x to"); err != nil {
				t.Fatal(err)
			}
			for _, write := range []func() error{
				func() error { return precondition.Write(t.Context(), c, read, changed, "doing x to") },
				func() error { return precondition.WriteStatus(t.Context(), c, read, changed, "doing x to") },
			} {
				if err := write(); !apierrors.IsConflict(err) || precondition.IsGone(err) || err.Error()[:len(name)] != name {
					t.Errorf("it has changed: got %v", err)
				}
			}
			if err := c.Delete(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			if err := precondition.Write(t.Context(), c, read, changed, "doing x to"); !apierrors.IsNotFound(err) || !precondition.IsGone(err) {
				t.Errorf("it no longer exists: got %v", err)
			}
		})
	}
}
