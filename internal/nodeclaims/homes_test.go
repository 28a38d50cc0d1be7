// SPDX-License-Identifier: Apache-2.0

package nodeclaims_test

import (
	"go/ast"
	"go/types"
	"io/fs"
	"os"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"
)

const (
	module     = "github.com/karpenter-capi/karpenter-capi/"
	repository = "../.."
)

// homes are the packages that write the objects of a type.
var homes = map[string]string{
	"*sigs.k8s.io/karpenter/pkg/apis/v1.NodeClaim":      "internal/nodeclaims",
	"*sigs.k8s.io/cluster-api/api/core/v1beta2.Machine": "internal/lifecycle",
}

// writers are the functions that write an object, by package. Those of a client are methods.
var writers = map[string][]string{
	"sigs.k8s.io/controller-runtime/pkg/client": {"Create", "Update", "Patch", "Apply", "Delete", "DeleteAllOf"},
	module + "internal/precondition":            {"Write", "WriteStatus"},
}

// NodeClaims and Machines are written by the functions of their homes, which have the preconditions.
func TestEachWriteIsInItsHome(t *testing.T) {
	found := map[string]bool{}
	for _, pkg := range load(t) {
		for _, file := range pkg.Syntax {
			ast.Inspect(file, func(node ast.Node) bool {
				call, is := node.(*ast.CallExpr)
				if !is || !isWrite(pkg.TypesInfo, call) {
					return true
				}
				for _, argument := range call.Args {
					home, known := homes[pkg.TypesInfo.TypeOf(argument).String()]
					if inside := pkg.PkgPath == module+home; inside {
						found[home] = true
					} else if known {
						t.Errorf("%s: add a function to %s, and call that", pkg.Fset.Position(call.Pos()), home)
					}
				}
				return true
			})
		}
	}
	for _, home := range homes {
		if !found[home] {
			t.Errorf("no write is found in %s: this test no longer recognizes them", home)
		}
	}
}

// isWrite reports whether a call writes an object.
func isWrite(info *types.Info, call *ast.CallExpr) bool {
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return false
	}
	function, is := info.Uses[selector.Sel].(*types.Func)
	return is && function.Pkg() != nil && slices.Contains(writers[function.Pkg().Path()], function.Name())
}

// load returns the packages of the operator with their types, without their tests.
func load(t *testing.T) []*packages.Package {
	t.Helper()
	// go test repeats a result until a file or folder changes that the test itself has read. Another process reads these.
	for _, folder := range []string{"cmd", "internal"} {
		if err := fs.WalkDir(os.DirFS(repository), folder, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedImports,
		Dir:  repository, BuildFlags: []string{"-trimpath"}, // `make test` has compiled the other packages so
	}, "./cmd/...", "./internal/...")
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range loaded {
		for _, err := range pkg.Errors {
			t.Error(err)
		}
	}
	return loaded
}
