// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const (
	api = "github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	// anEvent is the place of the reasons of events.
	anEvent = "events"
)

// setters are the functions of operatorpkg that set a condition with a reason, and its status.
var setters = map[string]string{"SetFalse": "False", "SetTrueWithReason": "True", "SetUnknownWithReason": "Unknown"}

// noPlace is the place of reasons of conditions of which the code does not show the type. No comment lists it.
const noPlace = "a condition whose type this test cannot determine"

// places are the places of reasons that are fields of a type.
var places = map[string]string{
	"github.com/awslabs/operatorpkg/status.Condition": noPlace,
	"k8s.io/apimachinery/pkg/apis/meta/v1.Condition":  noPlace,
	api + ".UnavailableOffering":                      "status.unavailableOfferings",
	api + ".InvalidOfferings":                         "status.invalidOfferings",
	"sigs.k8s.io/karpenter/pkg/events.Event":          anEvent,
}

// source is what code gives to a variable, to a field, or as a result of a function: the result with this index of an
// expression.
type source struct {
	info  *types.Info
	value ast.Expr
	index int
}

// setting is code that sets a reason at a place, such as ClusterReady=False.
type setting struct {
	source
	place string
}

// code is the code of the operator, without its tests, as far as reasons flow through it.
type code struct {
	fset     *token.FileSet
	sources  map[types.Object][]source
	settings []setting
	// replaced are the calls whose condition the next statement sets again.
	replaced map[*ast.CallExpr]bool
}

// readCode reads the code of the operator.
func readCode(t *testing.T) *code {
	t.Helper()
	c := &code{fset: token.NewFileSet(), sources: map[types.Object][]source{}, replaced: map[*ast.CallExpr]bool{}}
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedImports,
		Dir:  repository, Fset: c.fset,
		BuildFlags: []string{"-trimpath"}, // `make test` has compiled the other packages so
	}
	var patterns []string
	for _, folder := range []string{"api", "cmd", "internal"} {
		patterns = append(patterns, "./"+folder+"/...")
		// go test repeats a result until a file or folder changes that the test itself has read. Another process reads these.
		if err := fs.WalkDir(os.DirFS(repository), folder, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			t.Fatal(err)
		}
	}
	read, err := packages.Load(config, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range read {
		if len(p.Errors) > 0 {
			t.Fatal(p.Errors)
		}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(node ast.Node) bool {
				c.add(p.TypesInfo, node)
				return true
			})
		}
	}
	return c
}

// add adds what a node sets.
func (c *code) add(info *types.Info, node ast.Node) {
	switch node := node.(type) {
	case *ast.FuncDecl:
		c.addResults(info, node)
	case *ast.BlockStmt:
		c.addReplaced(info, node.List)
	case *ast.CaseClause:
		c.addReplaced(info, node.Body)
	case *ast.AssignStmt:
		c.assign(info, node.Lhs, node.Rhs)
	case *ast.ValueSpec:
		names := make([]ast.Expr, len(node.Names))
		for i, name := range node.Names {
			names[i] = name
		}
		c.assign(info, names, node.Values)
	case *ast.CompositeLit:
		c.addFields(info, node)
	case *ast.CallExpr:
		c.addArguments(info, node)
	}
}

func (c *code) set(info *types.Info, place string, value ast.Expr) {
	c.settings = append(c.settings, setting{source{info, value, 0}, place})
}

// addResults adds what a function returns. Karpenter makes the reason of Drifted of what IsDrifted returns.
func (c *code) addResults(info *types.Info, function *ast.FuncDecl) {
	object := info.Defs[function.Name].(*types.Func)
	results := variables(object.Signature().Results())
	ast.Inspect(function, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			for i, result := range results {
				switch len(node.Results) {
				case 0: // the variable has been assigned to
				case len(results):
					c.sources[result] = append(c.sources[result], source{info, node.Results[i], 0})
				default:
					c.sources[result] = append(c.sources[result], source{info, node.Results[0], i})
				}
				if object.Name() == "IsDrifted" && i == 0 {
					c.set(info, "Drifted=True", node.Results[0])
				}
			}
		}
		return true
	})
}

// addReplaced adds the statements whose condition the next statement sets again, so that the time of its transition
// changes: nobody sees what they set.
func (c *code) addReplaced(info *types.Info, statements []ast.Stmt) {
	var before *ast.CallExpr
	for _, statement := range statements {
		expression, _ := statement.(*ast.ExprStmt)
		if expression == nil {
			before = nil
			continue
		}
		call, _ := expression.X.(*ast.CallExpr)
		if before != nil && call != nil && conditionOf(info, before) != "" && conditionOf(info, before) == conditionOf(info, call) {
			c.replaced[before] = true
		}
		before = call
	}
}

// assign adds an assignment.
func (c *code) assign(info *types.Info, left, right []ast.Expr) {
	for i, target := range left {
		object := objectOf(info, target)
		switch {
		case object == nil || len(right) == 0:
		case len(left) == len(right):
			c.sources[object] = append(c.sources[object], source{info, right[i], 0})
			if field, ok := target.(*ast.SelectorExpr); ok {
				c.setField(info, info.TypeOf(field.X), object, right[i])
			}
		default:
			c.sources[object] = append(c.sources[object], source{info, right[0], i})
		}
	}
}

// addFields adds the fields of a struct.
func (c *code) addFields(info *types.Info, literal *ast.CompositeLit) {
	of := info.TypeOf(literal)
	if pointer, ok := of.Underlying().(*types.Pointer); ok { // in a list of pointers
		of = pointer.Elem()
	}
	structure, ok := of.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, value := range literal.Elts {
		var field types.Object
		if named, ok := value.(*ast.KeyValueExpr); ok {
			field, value = info.Uses[named.Key.(*ast.Ident)], named.Value
		} else {
			field = structure.Field(i)
		}
		c.sources[field] = append(c.sources[field], source{info, value, 0})
		c.setField(info, of, field, value)
	}
}

// setField adds the value of a field if the field is the reason of one of the places.
func (c *code) setField(info *types.Info, of types.Type, field types.Object, value ast.Expr) {
	if pointer, ok := of.Underlying().(*types.Pointer); ok {
		of = pointer.Elem()
	}
	if place := places[of.String()]; place != "" && field.Name() == "Reason" {
		c.set(info, place, value)
	}
}

// addArguments adds the arguments of a call.
func (c *code) addArguments(info *types.Info, call *ast.CallExpr) {
	callee, _ := objectOf(info, call.Fun).(*types.Func)
	if callee == nil {
		return
	}
	for i, parameter := range variables(callee.Signature().Params()) {
		if i < len(call.Args) {
			c.sources[parameter] = append(c.sources[parameter], source{info, call.Args[i], 0})
		}
	}
	if condition := conditionOf(info, call); condition != "" && !c.replaced[call] {
		c.set(info, condition+"="+setters[callee.Name()], call.Args[1])
	}
	if callee.FullName() == "sigs.k8s.io/karpenter/pkg/cloudprovider.NewCreateError" {
		c.set(info, "Launched=Unknown", call.Args[1])
	}
}

// conditionOf returns the condition that a call sets with a reason; empty if it sets none.
func conditionOf(info *types.Info, call *ast.CallExpr) string {
	callee, _ := objectOf(info, call.Fun).(*types.Func)
	if callee == nil || setters[callee.Name()] == "" || callee.Pkg().Path() != "github.com/awslabs/operatorpkg/status" {
		return ""
	}
	if value := info.Types[call.Args[0]].Value; value != nil {
		return constant.StringVal(value)
	}
	return noPlace
}

// objectOf returns what an expression names; nil if it names nothing.
func objectOf(info *types.Info, expression ast.Expr) types.Object {
	switch expression := ast.Unparen(expression).(type) {
	case *ast.Ident:
		return info.ObjectOf(expression)
	case *ast.SelectorExpr:
		return info.ObjectOf(expression.Sel)
	}
	return nil
}

// variables returns the parameters or results of a function.
func variables(tuple *types.Tuple) []*types.Var {
	return slices.Collect(tuple.Variables())
}

// reasons is what an expression can be, and where that is.
type reasons struct {
	// exact are the constants that reach it without a field in between.
	exact map[string]token.Position
	// others are those that pass through a field, which can have any of them.
	others map[string]token.Position
	// repeats reports whether it can be the reason of another condition.
	repeats bool
	// unknown are the expressions that cannot be followed.
	unknown []string
}

// step is an expression that was followed.
type step struct {
	ast.Expr
	index        int
	throughField bool
}

// reach returns the reasons that a setting can have.
func (c *code) reach(s setting) reasons {
	r := reasons{exact: map[string]token.Position{}, others: map[string]token.Position{}}
	c.follow(s.source, false, &r, map[step]bool{})
	return r
}

// follow adds what a source can be.
func (c *code) follow(s source, throughField bool, r *reasons, seen map[step]bool) {
	expression := ast.Unparen(s.value)
	if value := s.info.Types[expression].Value; value != nil {
		if text := constant.StringVal(value); text != "" && throughField {
			r.others[text] = c.fset.Position(expression.Pos())
		} else if text != "" {
			r.exact[text] = c.fset.Position(expression.Pos())
		}
		return
	}
	key := step{expression, s.index, throughField}
	if seen[key] {
		return
	}
	seen[key] = true
	next := func(values ...ast.Expr) {
		for _, value := range values {
			c.follow(source{s.info, value, 0}, throughField, r, seen)
		}
	}
	switch expression := expression.(type) {
	case *ast.CallExpr:
		callee, _ := objectOf(s.info, expression.Fun).(*types.Func)
		switch {
		case s.info.Types[expression.Fun].IsType(): // a conversion
			next(expression.Args...)
			return
		case callee == nil:
		case strings.HasPrefix(callee.FullName(), "github.com/samber/lo."): // one of its arguments
			next(expression.Args...)
			return
		default:
			c.followObject(variables(callee.Signature().Results())[s.index], throughField, r, seen)
			return
		}
	case *ast.Ident, *ast.SelectorExpr:
		if variable, ok := objectOf(s.info, expression).(*types.Var); ok {
			c.followObject(variable, throughField || variable.IsField(), r, seen)
			return
		}
	case *ast.IndexExpr:
		next(expression.X)
		return
	case *ast.CompositeLit: // a list
		next(expression.Elts...)
		return
	}
	r.unknown = append(r.unknown, c.fset.Position(expression.Pos()).String())
}

func (c *code) followObject(variable *types.Var, throughField bool, r *reasons, seen map[step]bool) {
	if variable.IsField() && variable.Name() == "Reason" && variable.Pkg().Path() == "k8s.io/apimachinery/pkg/apis/meta/v1" {
		r.repeats = true
		return
	}
	sources := c.sources[variable]
	if len(sources) == 0 {
		r.unknown = append(r.unknown, fmt.Sprintf("%s: nothing sets %s", c.fset.Position(variable.Pos()), variable.Name()))
	}
	for _, s := range sources {
		c.follow(s, throughField, r, seen)
	}
}
