// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

const group = "infrastructure.cluster.x-k8s.io"

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// A request ends with its restart or with its claim, and waits while the Cluster is paused or was moved.
func TestReconcile(t *testing.T) {
	type claim = *karpv1.NodeClaim
	restarts := func(c claim) {
		c.StatusConditions().SetTrueWithReason(karpv1.ConditionTypeRebooting, karpv1.RebootReasonIssued, "x")
	}
	for name, tc := range map[string]struct {
		change  func(claim)
		paused  bool
		moved   bool
		deletes bool
	}{
		"the machine restarts": {change: restarts},
		"it has restarted": {change: func(c claim) {
			c.StatusConditions().SetFalse(karpv1.ConditionTypeRebooting, karpv1.RebootReasonSucceeded, "x")
		}, deletes: true},
		"a user has removed the condition": {change: func(claim) {}, deletes: true},
		"the claim ends meanwhile": {change: func(c claim) {
			restarts(c)
			c.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
		}, deletes: true},
		"the Cluster is paused": {change: func(claim) {}, paused: true},
		"the Cluster was moved": {change: func(claim) {}, moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := fixture.Claim(time.Hour)
			c.Finalizers = []string{karpv1.TerminationFinalizer}
			c.Annotations = map[string]string{v1alpha1.RemediationAnnotation: "TestRemediation." + group + "/m/1"}
			tc.change(c)
			request := object(group+"/v1", "TestRemediation", fixture.Served.Namespace, "m")
			request.SetAnnotations(map[string]string{v1alpha1.RemediationOperationAnnotation: c.Name + "/1"})
			request.SetLabels(map[string]string{clusterv1.ClusterNameLabel: fixture.Served.Name})
			crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "testremediations."+group)
			crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1"})
			objects := []client.Object{c, request, crd}
			if !tc.moved {
				cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
				cluster.Spec.Paused = new(tc.paused)
				objects = append(objects, cluster)
			}
			api := fixture.WithUIDs(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithStatusSubresource(&karpv1.NodeClaim{}).Build())
			both := fixture.Cluster{Client: api}
			r := NewReconciler(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both})
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
			if err != nil || (result.RequeueAfter > 0) != (tc.paused || tc.moved) {
				t.Errorf("got %+v and %v", result, err)
			}
			err = api.Get(t.Context(), types.NamespacedName{Namespace: fixture.Served.Namespace, Name: "m"}, request)
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) != tc.deletes {
				t.Errorf("got %v for the request, want that it is deleted: %t", err, tc.deletes)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
				t.Fatal(err)
			}
			if _, named := c.Annotations[v1alpha1.RemediationAnnotation]; named == tc.deletes {
				t.Errorf("got annotations %v", c.Annotations)
			}
		})
	}
}

// Claims without a request cause no reconcile.
func TestHasEnded(t *testing.T) {
	if hasEnded(&karpv1.NodeClaim{}) || hasEnded(&clusterv1.Machine{}) {
		t.Error("an object without a request causes a reconcile")
	}
}
