// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/yaml"
)

// TestCRDs checks what Cluster API relies on: it finds a CRD by its name, and the version by its
// label.
func TestCRDs(t *testing.T) {
	files, err := fs.Glob(CRDs, "crd/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, file := range files {
		data, err := CRDs.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kinds[crd.Spec.Names.Kind] = true
		if want := contract.CalculateCRDName(crd.Spec.Group, crd.Spec.Names.Kind); crd.Name != want {
			t.Errorf("%s: name = %q, want %q", file, crd.Name, want)
		}
		if got := crd.Labels["cluster.x-k8s.io/v1beta2"]; got != "v1alpha1" {
			t.Errorf("%s: contract label = %q", file, got)
		}
		identity := crd.Spec.Names.Kind == "SimulatedClusterIdentity"
		if (crd.Spec.Scope == apiextensionsv1.NamespaceScoped) == identity {
			t.Errorf("%s: scope = %s", file, crd.Spec.Scope)
		}
		if len(crd.Spec.Versions) != 1 {
			t.Errorf("%s: %d versions, want one", file, len(crd.Spec.Versions))
			continue
		}
		// Of the templates, only that of machines has a status. An identity has none.
		hasStatus := crd.Spec.Versions[0].Subresources != nil && crd.Spec.Versions[0].Subresources.Status != nil
		if kind := crd.Spec.Names.Kind; hasStatus != (kind == "SimulatedMachineTemplate" || !strings.HasSuffix(kind, "Template") && !identity) {
			t.Errorf("%s: status subresource = %t", file, hasStatus)
		}
	}
	want := map[string]bool{
		"SimulatedCluster": true, "SimulatedClusterTemplate": true, "SimulatedClusterIdentity": true,
		"SimulatedControlPlane": true,
		"SimulatedConfig":       true, "SimulatedConfigTemplate": true,
		"SimulatedMachine": true, "SimulatedMachineTemplate": true,
		"SimulatedMachinePool": true, "SimulatedMachinePoolTemplate": true,
		"SimulatedRemediation": true, "SimulatedRemediationTemplate": true,
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}
