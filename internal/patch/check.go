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

// check returns an error for the first construct of a Go template that is not allowed, and passes the value of each range
// through itemsOf.
func (t *templates) check(node parse.Node, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s is nested more than %d deep", excerpt(node.String()), maxDepth)
	}
	switch node := node.(type) {
	case *parse.ListNode:
		if node == nil { // no else
			return nil
		}
		return checkAll(t, node.Nodes, depth)
	case *parse.ActionNode:
		return t.check(node.Pipe, depth)
	case *parse.IfNode:
		return t.checkBranch(&node.BranchNode, depth)
	case *parse.WithNode:
		return t.checkBranch(&node.BranchNode, depth)
	case *parse.RangeNode:
		return t.checkRange(node, depth)
	case *parse.PipeNode:
		return checkAll(t, node.Cmds, depth+1)
	case *parse.CommandNode:
		return checkAll(t, node.Args, depth)
	case *parse.ChainNode:
		return t.check(node.Node, depth)
	case *parse.IdentifierNode:
		if !slices.Contains(builtins, node.Ident) && t.functions[node.Ident] == nil {
			return fmt.Errorf("the function %s is not allowed in patches", node.Ident)
		}
	case *parse.TemplateNode:
		return fmt.Errorf("%s: template, block and define are not allowed in patches", node)
	}
	return nil
}

func checkAll[N parse.Node](t *templates, nodes []N, depth int) error {
	for _, node := range nodes {
		if err := t.check(node, depth); err != nil {
			return err
		}
	}
	return nil
}

func (t *templates) checkBranch(node *parse.BranchNode, depth int) error {
	for _, part := range []parse.Node{node.Pipe, node.List, node.ElseList} {
		if err := t.check(part, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// checkRange refuses a range that is not over lists and maps. That of other values, such as variables, is known only when it is rendered.
func (t *templates) checkRange(node *parse.RangeNode, depth int) error {
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
	if err := t.checkBranch(&node.BranchNode, depth); err != nil {
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
