// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// The API server admits the Pods of all installations and samples to a namespace with the restricted profile.
func TestPodSecurity(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := apiServer.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	create := func(spec corev1.PodSpec) error {
		// The API server of this test has no controllers that set the priority.
		spec.Priority = nil
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Namespace: namespace.Name}, Spec: spec}
		return apiServer.Create(t.Context(), pod, client.DryRunAll)
	}
	privileged := corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}
	if err := create(privileged); !apierrors.IsForbidden(err) {
		t.Fatalf("a Pod without a security context: got %v, want that the API server rejects it", err)
	}
	for name, objects := range installations(t) {
		t.Run(name, func(t *testing.T) {
			pods := podsOf(t, objects)
			if len(pods) == 0 {
				t.Error("it has no Pods")
			}
			for _, pod := range pods {
				if err := create(pod); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// installations returns the objects of all installations and samples that have Pods.
func installations(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	all := map[string][]*unstructured.Unstructured{}
	for _, folder := range []string{"default", "samples/catalog-refresh", "samples/token-renewal"} {
		manifests, err := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "kustomize", filepath.Join("..", "..", "..", "config", folder)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if all["config/"+folder], err = charts.Decode(string(manifests)); err != nil {
			t.Fatal(err)
		}
	}
	helm := &charts.Helm{Dir: t.TempDir()}
	for name, values := range map[string]charts.Values{
		"the chart in one cluster":           {},
		"the chart in two clusters":          {"placement": "WorkloadCluster", "managementCluster": charts.Values{"existingSecret": "management"}},
		"the chart in a management cluster":  {"placement": "ManagementCluster", "settings": charts.Values{"clusterName": "demo", "clusterNamespace": "karpenter"}},
		"the chart with security parameters": {"controller": charts.Values{"securityContext": charts.Values{"seccompProfile": charts.Values{"type": "RuntimeDefault"}}}},
	} {
		objects, err := helm.Template(t.Context(), "karpenter-capi", "karpenter", charts.Operator, values)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = objects
	}
	return all
}

// podsOf returns the Pods of Deployments and CronJobs.
func podsOf(t *testing.T, objects []*unstructured.Unstructured) []corev1.PodSpec {
	t.Helper()
	var pods []corev1.PodSpec
	for _, object := range objects {
		deployment, job := &appsv1.Deployment{}, &batchv1.CronJob{}
		var into runtime.Object
		switch object.GetKind() {
		case "Deployment":
			into = deployment
		case "CronJob":
			into = job
		default:
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() == "Deployment" {
			pods = append(pods, deployment.Spec.Template.Spec)
		} else {
			pods = append(pods, job.Spec.JobTemplate.Spec.Template.Spec)
		}
	}
	return pods
}
