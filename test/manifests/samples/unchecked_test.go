// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unchecked are the kinds in a sample that no test checks against their CRDs, by folder, because hack/crds
// cannot download the Go module with the CRDs. Everything else in these samples is checked.
var unchecked = map[string][]schema.GroupVersionKind{
	// The checksum database had no entry for v1.13.2, and the module proxy had no other version of v1.13.
	"metal3": {
		{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "Metal3MachineTemplate"},
		{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "Metal3RemediationTemplate"},
	},
}

// standIns returns CRDs for the unchecked kinds that accept any spec.
func standIns() []*apiextensionsv1.CustomResourceDefinition {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range slices.Concat(slices.Collect(maps.Values(unchecked))...) {
		singular := strings.ToLower(kind.Kind)
		crds = append(crds, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + kind.Group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: kind.Group,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, ListKind: kind.Kind + "List", Singular: singular, Plural: singular + "s"},
				Scope: apiextensionsv1.NamespaceScoped,
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: kind.Version, Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type:       "object",
						Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", XPreserveUnknownFields: new(true)}},
					}},
				}},
			},
		})
	}
	return crds
}

// Only the samples in unchecked have a comment about that.
func TestUnchecked(t *testing.T) {
	files, err := filepath.Glob("../../../config/samples/*/machines.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no base templates: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kinds, is := unchecked[filepath.Base(filepath.Dir(file))]
		if !is {
			if strings.Contains(string(content), "not checked") {
				t.Errorf("%s has the comment that it is not checked, but it is", file)
			}
			continue
		}
		for _, kind := range kinds {
			if want := "The " + kind.Kind + " is not checked against its CRD"; !strings.Contains(string(content), want) {
				t.Errorf("%s lacks the comment %q", file, want)
			}
		}
	}
}
