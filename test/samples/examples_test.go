// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The simplest sample comes without the templates that it refers to.
func TestSimplest(t *testing.T) {
	createAll(t, "")
}

// yamlBlock is a block of YAML in Markdown.
var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// What a reader copies from README.md or a guide is accepted.
func TestExamplesInDocuments(t *testing.T) {
	root := filepath.Join("..", "..")
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
			for _, block := range yamlBlock.FindAllSubmatch(content, -1) {
				for _, object := range decode(t, block[1]) {
					if object.GetKind() != v1alpha1.Kind {
						continue
					}
					found++
					if err := apiServer.Create(t.Context(), object, client.DryRunAll); err != nil {
						t.Errorf("%s: %v", object.GetName(), err)
					}
				}
			}
			if found == 0 {
				t.Errorf("it has no block of YAML with a %s", v1alpha1.Kind)
			}
		})
	}
}
