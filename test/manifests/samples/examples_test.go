// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The simplest sample does not contain the templates that it refers to.
func TestSimplest(t *testing.T) {
	createAll(t, "")
}

// yamlBlock is a block of YAML in Markdown, in a list or not.
var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// aboutOperation are the guides that show no template.
var aboutOperation = []string{"devices.md", "fleet.md", "inventory.md", "moving-clusters.md", "placements.md", "prices.md", "uninstall.md"}

// The API server accepts what a reader copies from README.md or a guide.
func TestExamplesInDocuments(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	documents, err := filepath.Glob(filepath.Join(root, "docs", "guides", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range append(documents, filepath.Join(root, "README.md")) {
		t.Run(filepath.Base(document), func(t *testing.T) {
			content, err := os.ReadFile(document)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			var catalogs []*unstructured.Unstructured
			for _, block := range yamlBlock.FindAllSubmatch(content, -1) {
				indent, text := "\n"+string(block[1]), "\n"+string(block[2])
				for _, object := range decode(t, []byte(strings.ReplaceAll(text, indent, "\n"))) {
					switch object.GetKind() {
					case v1alpha1.Kind:
						found++
					case v1alpha1.CatalogKind:
						catalogs = slices.Insert(catalogs, 0, object)
					}
					if err := apiServer.Create(t.Context(), object, client.DryRunAll); err != nil {
						t.Errorf("%s: %v", object.GetName(), err)
					} else if object.GetKind() == v1alpha1.Kind {
						generateExample(t, object, catalogs)
					}
				}
			}
			if found == 0 && !slices.Contains(aboutOperation, filepath.Base(document)) {
				t.Errorf("it has no YAML block with a %s", v1alpha1.Kind)
			}
		})
	}
}

// generateExample generates what the operator generates for an example, with the base templates of
// the sample for its provider. Its catalogs are the nearest of its document, and then those of the sample.
func generateExample(t *testing.T, object *unstructured.Unstructured, catalogs []*unstructured.Unstructured) {
	t.Helper()
	template := &v1alpha1.KarpenterMachineTemplate{}
	convert(t, object.Object, template)
	ref := template.Spec.Template.Spec.InfrastructureRef
	if ref == nil {
		return // it has only what it discovers
	}
	folders := map[string]string{"AWSMachineTemplate": "aws", "VSphereMachineTemplate": "rke2", "Metal3MachineTemplate": "metal3", "AzureMachinePool": "azure-machinepool"}
	t.Run(object.GetName(), func(t *testing.T) {
		s := apply(t, folders[ref.Kind])
		if bootstrap := template.Spec.Template.Spec.Bootstrap.ConfigRef.Kind; s.bases.Bootstrap.GetKind() != bootstrap {
			t.Fatalf("there is no sample with %s and %s", ref.Kind, bootstrap)
		}
		s.template, s.objects = template, slices.Concat(catalogs, s.objects)
		if all, _ := s.generate(t); len(all) == 0 {
			t.Error("it offers nothing")
		}
	})
}

// README.md shows all that a user writes in one block, which fits on a screen.
func TestExampleInReadme(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := yamlBlock.FindAllSubmatch(content, -1)
	if len(blocks) != 1 {
		t.Fatalf("it has %d blocks of YAML, want one", len(blocks))
	}
	if lines := strings.Count(string(blocks[0][2]), "\n"); lines > 30 {
		t.Errorf("it has %d lines, want at most 30", lines)
	}
	var kinds []string
	for _, object := range decode(t, blocks[0][2]) {
		kinds = append(kinds, object.GetKind())
	}
	if want := []string{v1alpha1.CatalogKind, v1alpha1.Kind, "NodePool"}; !slices.Equal(kinds, want) {
		t.Errorf("it has %v, want %v", kinds, want)
	}
}
