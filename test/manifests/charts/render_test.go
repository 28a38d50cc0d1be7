// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func TestMain(m *testing.M) {
	// Environment variables of the user must not be used as those of the chart.
	for _, name := range []string{"CLUSTER_NAME", "CLUSTER_NAMESPACE", "CLUSTER_API_KUBECONFIG", "LOG_LEVEL", "FEATURE_GATES"} {
		_ = os.Unsetenv(name)
	}
	os.Exit(m.Run())
}

const (
	release   = "karpenter-capi"
	namespace = MatrixNamespace
	node      = "control-plane-0"
)

// newHelm returns a helm that accesses no cluster. Without the binary the test fails.
func newHelm(t *testing.T) *Helm {
	t.Helper()
	if _, err := Binary(); err != nil {
		t.Fatal(err)
	}
	return &Helm{Dir: t.TempDir()}
}

// objects are the objects that a chart renders.
type objects []*unstructured.Unstructured

func render(t *testing.T, chart string, values Values) objects {
	t.Helper()
	rendered, err := newHelm(t).Template(t.Context(), release, namespace, chart, values)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// names returns kind, namespace and name of each object.
func (o objects) names() []string {
	names := []string{}
	for _, object := range o {
		names = append(names, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
	}
	return names
}

// decode fills typed objects with those of a kind, and fails on fields that the type lacks, like an API server with
// strict validation.
func decode[T any](t *testing.T, from objects, kind string) []*T {
	t.Helper()
	var decoded []*T
	for _, object := range from {
		if object.GetKind() != kind {
			continue
		}
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
			t.Errorf("%s %s: %v", kind, object.GetName(), err)
		}
		decoded = append(decoded, typed)
	}
	return decoded
}

// the returns the only object of a kind.
func the[T any](t *testing.T, from objects, kind string) *T {
	t.Helper()
	decoded := decode[T](t, from, kind)
	if len(decoded) != 1 {
		t.Fatalf("got %d of %s, want 1: %v", len(decoded), kind, from.names())
	}
	return decoded[0]
}

// checkKinds decodes all objects.
func checkKinds(t *testing.T, from objects) {
	t.Helper()
	kinds := map[string]func(){
		"ClusterRole":              func() { decode[rbacv1.ClusterRole](t, from, "ClusterRole") },
		"ClusterRoleBinding":       func() { decode[rbacv1.ClusterRoleBinding](t, from, "ClusterRoleBinding") },
		"ConfigMap":                func() { decode[corev1.ConfigMap](t, from, "ConfigMap") },
		"CustomResourceDefinition": func() { decode[apiextensionsv1.CustomResourceDefinition](t, from, "CustomResourceDefinition") },
		"KarpenterMachineTemplate": func() { decode[v1alpha1.KarpenterMachineTemplate](t, from, "KarpenterMachineTemplate") },
		"NodePool":                 func() { decode[karpv1.NodePool](t, from, "NodePool") },
		"Deployment":               func() { decode[appsv1.Deployment](t, from, "Deployment") },
		"NetworkPolicy":            func() { decode[networkingv1.NetworkPolicy](t, from, "NetworkPolicy") },
		"PodDisruptionBudget":      func() { decode[policyv1.PodDisruptionBudget](t, from, "PodDisruptionBudget") },
		"Role":                     func() { decode[rbacv1.Role](t, from, "Role") },
		"RoleBinding":              func() { decode[rbacv1.RoleBinding](t, from, "RoleBinding") },
		"Secret":                   func() { decode[corev1.Secret](t, from, "Secret") },
		"Service":                  func() { decode[corev1.Service](t, from, "Service") },
		"ServiceAccount":           func() { decode[corev1.ServiceAccount](t, from, "ServiceAccount") },
		// These are kinds of the Prometheus operator, whose types are not available here.
		"PrometheusRule": func() {},
		"ServiceMonitor": func() {},
	}
	for _, object := range from {
		if check, known := kinds[object.GetKind()]; known {
			check()
		} else {
			t.Errorf("a %s: add its type here", object.GetKind())
		}
	}
}
