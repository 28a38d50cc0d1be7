// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"strings"
	"testing"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func TestTemplateOf(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"generated for the Cluster":     {labels: GeneratedLabels(fixture.Served, "general"), want: "general"},
		"generated for another Cluster": {labels: GeneratedLabels(types.NamespacedName{Namespace: fixture.Served.Namespace, Name: "staging"}, "general")},
		"generated, without a Cluster":  {labels: map[string]string{v1alpha1.TemplateLabel: "general"}},
		"not generated, of the Cluster": {labels: map[string]string{clusterv1.ClusterNameLabel: fixture.Served.Name}},
		"not generated, of no Cluster":  {},
	} {
		t.Run(name, func(t *testing.T) {
			if got := TemplateOf(&metav1.ObjectMeta{Labels: tc.labels}, fixture.Served); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// An existing object of the same name is used only if it was generated for the same template
// of the same Cluster.
func TestCreate(t *testing.T) {
	labelsOf := func(cluster, template string) map[string]string {
		return lo.Assign(GeneratedLabels(types.NamespacedName{Namespace: fixture.Served.Namespace, Name: cluster}, template), map[string]string{v1alpha1.TemplateHashLabel: "a"})
	}
	const ofOther = "was not generated for KarpenterMachineTemplate general of Cluster clusters/prod: delete or rename it"
	otherContent := labelsOf(fixture.Served.Name, "general")
	otherContent[v1alpha1.TemplateHashLabel] = "b"
	for name, tc := range map[string]struct {
		exists  bool
		labels  map[string]string
		created bool
		refused string
	}{
		"nothing exists":                 {created: true},
		"it exists":                      {exists: true, labels: labelsOf(fixture.Served.Name, "general")},
		"one of another Cluster exists":  {exists: true, labels: labelsOf("staging", "general"), refused: ofOther},
		"one of another template exists": {exists: true, labels: labelsOf(fixture.Served.Name, "other"), refused: ofOther},
		"one of other content exists":    {exists: true, labels: otherContent, refused: "was generated from something else"},
		"one of a user exists":           {exists: true, refused: ofOther},
		"one of a user in the Cluster":   {exists: true, labels: map[string]string{clusterv1.ClusterNameLabel: fixture.Served.Name}, refused: ofOther},
	} {
		generated := fixture.Infrastructure()
		generated.SetName("general-workers-12345678")
		generated.SetResourceVersion("")
		deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "general-m5-12345678"}}
		for kind, object := range map[string]client.Object{"AWSMachineTemplate": generated, "MachineDeployment": deployment} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				object.SetLabels(labelsOf(fixture.Served.Name, "general"))
				api := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
				if tc.exists {
					existing := object.DeepCopyObject().(client.Object)
					existing.SetLabels(tc.labels)
					if err := api.Create(t.Context(), existing); err != nil {
						t.Fatal(err)
					}
				}
				created, err := Create(t.Context(), &clients.Clusters{Cluster: fixture.Served, Management: fixture.Cluster{Client: api}}, object)
				if created != tc.created || (err != nil) != (tc.refused != "") {
					t.Fatalf("got created=%t and %v, want created=%t refused=%q", created, err, tc.created, tc.refused)
				}
				want := kind + " " + client.ObjectKeyFromObject(object).String() + " exists, but " + tc.refused
				if tc.refused != "" && (!strings.Contains(err.Error(), want) || !apierrors.IsAlreadyExists(err)) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			})
		}
	}
}
