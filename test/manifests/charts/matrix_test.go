// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What holds with all valid values.
func TestMatrix(t *testing.T) {
	for name, values := range Matrix() {
		t.Run(name, func(t *testing.T) {
			rendered := render(t, Operator, values)
			checkKinds(t, rendered)
			seen := map[string]bool{}
			for i, name := range rendered.names() {
				if seen[name] {
					t.Errorf("%s exists twice", name)
				}
				seen[name] = true
				if rendered[i].GetKind() != "ConfigMap" { // extraObjects are as the user writes them
					checkMetadata(t, rendered[i], values)
				}
			}
		})
	}
}

// checkMetadata checks that an object has the labels and annotations of all objects.
func checkMetadata(t *testing.T, object *unstructured.Unstructured, values Values) {
	t.Helper()
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	for name, want := range map[string]string{
		"app.kubernetes.io/name": "karpenter-capi", "app.kubernetes.io/instance": release, "app.kubernetes.io/managed-by": "Helm",
		"app.kubernetes.io/version": "dev", "helm.sh/chart": "karpenter-capi-0.0.0-dev",
	} {
		if labels[name] != want {
			t.Errorf("%s %s: the label %s is %q, want %q", object.GetKind(), object.GetName(), name, labels[name], want)
		}
	}
	if _, ok := values["additionalLabels"]; ok && (labels["example.com/mine"] != "yes" || annotations["example.com/mine"] != "yes") {
		t.Errorf("%s %s lacks the additional label and annotation", object.GetKind(), object.GetName())
	}
}

func TestLint(t *testing.T) {
	helm := newHelm(t)
	lint := func(chart string, values Values) {
		t.Helper()
		if printed, err := helm.Run(t.Context(), values, "lint", "--strict", Chart(chart)); err != nil || !strings.Contains(printed, "0 chart(s) failed") {
			t.Errorf("%v\n%s", err, printed)
		}
	}
	lint(CRDs, nil)
	for name, values := range Matrix() {
		t.Run(name, func(*testing.T) { lint(Operator, values) })
	}
}
