// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"reflect"
	"slices"
	"text/template/parse"
)

// maxDepth is how deep conditions, ranges and parentheses of a Go template can be nested.
const maxDepth = 250

// itemsOf is the name of budget.items in Go templates. They cannot use it themselves, because it is a keyword.
const itemsOf = "range"

// place is where a node of a Go template is.
type place struct {
	depth int
	// moved is true in a range and in a with: there, the dot is not the map of all variables.
	moved bool
}

func (p place) deeper() place { return place{p.depth + 1, p.moved} }

// check returns an error for the first construct of a Go template that is not allowed, and passes the value of each range
// through itemsOf.
func (t *templates) check(node parse.Node, at place) error {
	if at.depth > maxDepth {
		return fmt.Errorf("%s is nested more than %d deep", excerpt(node.String()), maxDepth)
	}
	switch node := node.(type) {
	case *parse.ListNode:
		if node == nil { // no else
			return nil
		}
		return checkAll(t, node.Nodes, at)
	case *parse.ActionNode:
		return t.check(node.Pipe, at)
	case *parse.IfNode:
		return t.checkBranch(&node.BranchNode, at, at.moved)
	case *parse.WithNode:
		return t.checkBranch(&node.BranchNode, at, true)
	case *parse.RangeNode:
		return t.checkRange(node, at)
	case *parse.PipeNode:
		return checkAll(t, node.Cmds, at.deeper())
	case *parse.CommandNode:
		return checkAll(t, node.Args, at)
	case *parse.ChainNode:
		return t.check(node.Node, at)
	case *parse.FieldNode, *parse.VariableNode, *parse.IdentifierNode:
		return t.checkName(node, at)
	case *parse.TemplateNode:
		return fmt.Errorf("%s: template, block and define are not allowed in patches", node)
	}
	return nil
}

// checkName refuses variables and functions that do not exist.
func (t *templates) checkName(node parse.Node, at place) error {
	switch node := node.(type) {
	case *parse.FieldNode:
		if !at.moved {
			return checkVariable(node.Ident)
		}
	case *parse.VariableNode:
		if node.Ident[0] == "$" && len(node.Ident) > 1 {
			return checkVariable(node.Ident[1:])
		}
	case *parse.IdentifierNode:
		if !slices.Contains(builtins, node.Ident) && t.functions[node.Ident] == nil {
			return fmt.Errorf("the function %s is not allowed in patches", node.Ident)
		}
	}
	return nil
}

func checkAll[N parse.Node](t *templates, nodes []N, at place) error {
	for _, node := range nodes {
		if err := t.check(node, at); err != nil {
			return err
		}
	}
	return nil
}

// checkBranch checks a condition and its branches. moved is that of the first one.
func (t *templates) checkBranch(node *parse.BranchNode, at place, moved bool) error {
	at = at.deeper()
	if err := t.check(node.Pipe, at); err != nil {
		return err
	}
	if err := t.check(node.List, place{at.depth, moved}); err != nil {
		return err
	}
	return t.check(node.ElseList, at)
}

// checkRange refuses a range that is not over lists and maps. That of other values, such as variables, is known only when it is rendered.
func (t *templates) checkRange(node *parse.RangeNode, at place) error {
	last := node.Pipe.Cmds[len(node.Pipe.Cmds)-1]
	known := true
	switch first := last.Args[0].(type) {
	case *parse.NumberNode, *parse.StringNode, *parse.BoolNode:
		known = false
	case *parse.IdentifierNode:
		known = t.returnsItems(first.Ident)
	}
	if !known {
		return fmt.Errorf("range %s: range needs a list or a map", excerpt(node.Pipe.String()))
	}
	if err := t.checkBranch(&node.BranchNode, at, true); err != nil {
		return err
	}
	text := len(node.String())
	node.Pipe.Cmds = append(node.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: last.Pos, Args: []parse.Node{
		parse.NewIdentifier(itemsOf).SetPos(last.Pos),
		&parse.NumberNode{NodeType: parse.NodeNumber, Pos: last.Pos, IsInt: true, Int64: int64(text), Text: fmt.Sprint(text)},
	}})
	return nil
}

// returnsItems reports whether a function can return a list or a map.
func (t *templates) returnsItems(name string) bool {
	function, found := t.functions[name]
	if !found {
		return slices.Contains([]string{"and", "index", "or", "slice"}, name)
	}
	kind := reflect.TypeOf(function).Out(0).Kind()
	return kind == reflect.Interface || kind == reflect.Slice || kind == reflect.Map
}
