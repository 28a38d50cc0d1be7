// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/yaml"
)

const buffer = "capacitybuffers.autoscaling.x-k8s.io"

var ours = []string{"instancetypecatalogs.karpenter.cluster.x-k8s.io", "karpentermachinetemplates.karpenter.cluster.x-k8s.io"}

var karpenters = []string{"nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh", "nodepools.karpenter.sh"}

// Each part can be omitted, for a cluster that has it.
func TestCRDParts(t *testing.T) {
	off := Values{"enabled": false}
	for name, tc := range map[string]struct {
		values Values
		want   []string
	}{
		"all":             {nil, slices.Concat([]string{buffer}, ours, karpenters)},
		"without ours":    {Values{"karpenterCAPI": off}, append([]string{buffer}, karpenters...)},
		"ours only":       {Values{"karpenter": off, "capacityBuffer": off}, ours},
		"without buffers": {Values{"capacityBuffer": off}, slices.Concat(ours, karpenters)},
		"none":            {Values{"karpenterCAPI": off, "karpenter": off, "capacityBuffer": off}, nil},
		"not kept":        {Values{"keep": false}, slices.Concat([]string{buffer}, ours, karpenters)},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := render(t, CRDs, tc.values)
			checkKinds(t, rendered)
			var got []string
			for _, object := range rendered {
				got = append(got, object.GetName())
				_, keeps := object.GetAnnotations()["helm.sh/resource-policy"]
				if want := tc.values["keep"] == nil; keeps != want {
					t.Errorf("%s is kept when the chart is uninstalled: %t, want %t", object.GetName(), keeps, want)
				}
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The CRDs are those of controller-gen and of Karpenter's module.
func TestCRDContent(t *testing.T) {
	want := map[string]apiextensionsv1.CustomResourceDefinitionSpec{}
	for _, crd := range karpenterapis.CRDs {
		want[crd.Name] = crd.Spec
	}
	bases, err := filepath.Glob(filepath.Join(Root(), "config", "crd", "bases", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range bases {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatal(err)
		}
		want[crd.Name] = crd.Spec
	}
	got := map[string]apiextensionsv1.CustomResourceDefinitionSpec{}
	mine := Values{"example.com/mine": "yes"}
	rendered := render(t, CRDs, Values{"additionalLabels": mine, "additionalAnnotations": mine})
	for _, crd := range decode[apiextensionsv1.CustomResourceDefinition](t, rendered, "CustomResourceDefinition") {
		got[crd.Name] = crd.Spec
		if crd.Labels["example.com/mine"] != "yes" || crd.Annotations["example.com/mine"] != "yes" {
			t.Errorf("%s lacks the additional label and annotation", crd.Name)
		}
		if crd.Annotations["controller-gen.kubebuilder.io/version"] == "" {
			t.Errorf("%s has lost its annotations", crd.Name)
		}
		if contract := crd.Labels["cluster.x-k8s.io/v1beta2"]; slices.Contains(ours, crd.Name) && contract != "v1alpha1" {
			t.Errorf("the label of the contract is %q, want that of config/crd", contract)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Artifact Hub shows exactly the kinds that the chart installs.
func TestCRDsOfArtifactHub(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Chart(CRDs), "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	type shown struct{ Kind, Name, Version, DisplayName, Description string }
	metadata := struct {
		Annotations map[string]string
	}{}
	var got, want []shown
	if err := yaml.Unmarshal(text, &metadata); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(metadata.Annotations["artifacthub.io/crds"]), &got); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i].DisplayName == "" || got[i].Description == "" {
			t.Errorf("%s lacks a name or a description", got[i].Kind)
		}
		got[i].DisplayName, got[i].Description = "", ""
	}
	for _, crd := range decode[apiextensionsv1.CustomResourceDefinition](t, render(t, CRDs, nil), "CustomResourceDefinition") {
		for _, version := range crd.Spec.Versions {
			if version.Storage {
				want = append(want, shown{Kind: crd.Spec.Names.Kind, Name: crd.Name, Version: version.Name})
			}
		}
	}
	byName := func(a, b shown) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(got, byName)
	slices.SortFunc(want, byName)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
