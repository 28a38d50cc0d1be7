// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// Any file gives a catalog that can be used, or an error: nothing else, such as a panic. The files
// of all clouds are the seeds, with those of other clouds as well.
func FuzzImport(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*/*")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no files: %v", err)
	}
	for _, name := range seeds {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	price := decimal.RequireFromString("0.02")
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, format := range Formats {
			for _, options := range []Options{{Name: "x"}, {Name: "x", CPU: &price, SpotFactor: &price}} {
				result, err := format.Import([]File{{Name: "file", Content: bytes.NewReader(content)}}, options)
				if err != nil {
					continue
				}
				if checked := catalog.Check(&result.Catalog.Spec); checked.InstanceTypes == 0 || len(checked.Problems) > 0 {
					t.Errorf("%s: %d types, %v", format.Name, checked.InstanceTypes, checked.Problems)
				}
			}
		}
	})
}
