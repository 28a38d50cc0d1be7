// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// protocol are the names of the labels, annotations and hooks with which the operator controls
// Machines.
var protocol = map[string]bool{
	"NodeClaimUIDLabel":                        true,
	"NodeClaimAnnotation":                      true,
	"SpareSinceAnnotation":                     true,
	"MarkedForDeletionAtAnnotation":            true,
	"DrainHookAnnotation":                      true,
	"TerminateHookAnnotation":                  true,
	"DeleteMachineAnnotation":                  true,
	"ExcludeNodeDrainingAnnotation":            true,
	"ExcludeWaitForNodeVolumeDetachAnnotation": true,
	"PreDrainDeleteHookAnnotationPrefix":       true,
	"PreTerminateDeleteHookAnnotationPrefix":   true,
}

// Only this package reads and writes the labels, annotations and hooks of Machines.
func TestTheProtocolIsInOnePackage(t *testing.T) {
	used := map[string]bool{}
	for _, root := range []string{"..", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			inside := filepath.Base(filepath.Dir(path)) == "lifecycle"
			for _, name := range uses(t, path) {
				if inside {
					used[name] = true
				} else {
					t.Errorf("%s uses %s: add a function to package lifecycle that says what this means, and call that", path, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range protocol {
		if !used[name] && !strings.HasSuffix(name, "Prefix") {
			t.Errorf("package lifecycle does not use %s: remove it from this list", name)
		}
	}
}

// uses returns the names of the protocol that a file refers to in another package.
func uses(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok && protocol[selector.Sel.Name] {
			names = append(names, selector.Sel.Name)
		}
		return true
	})
	return names
}
