// SPDX-License-Identifier: Apache-2.0

// Package why answers why a Pod, NodeClaim, Machine, Node or template is in the state it is in: it follows the objects from the first to
// the last, and names the one to act on, and what to do.
//
// Rules are in the order in which causes precede each other. The first one that applies is the answer. The table in
// docs/troubleshooting.md is generated from them.
package why

import (
	"cmp"
	"context"
	"fmt"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// Step is one object between the question and its answer.
type Step struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	State     string `json:"state,omitempty"`
	Problem   string `json:"problem,omitempty"`
}

// String returns the kind and name.
func (s Step) String() string { return fmt.Sprintf("%s/%s", s.Kind, s.Name) }

// Answer is the answer to a question.
type Answer struct {
	// Steps are the objects, from the one that was asked about to the last that exists.
	Steps []Step `json:"steps"`
	// Rule is the name of the rule that applies; empty if none does.
	Rule string `json:"rule,omitempty"`
	// Cause is what happens, and names the object to act on.
	Cause string `json:"cause"`
	// Do is what a person can do about it.
	Do string `json:"do,omitempty"`
	// See is the page of the documentation with more about it.
	See string `json:"see,omitempty"`
}

// Kinds are the kinds of objects that can be asked about, as users name them.
var Kinds = []string{"pod", "nodeclaim", "machine", "node", "template"}

// Ask answers why an object is in its state. The namespace is only used for Pods.
func Ask(ctx context.Context, v *view.View, kind, namespace, name string) (*Answer, error) {
	s, err := newSubject(ctx, v, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	answer := &Answer{Steps: s.steps()}
	for i := range Rules {
		rule := &Rules[i]
		if !rule.of(s) {
			continue
		}
		found, err := rule.find(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rule.Name, err)
		}
		if found == "" {
			continue
		}
		answer.Rule, answer.Cause = rule.Name, found
		answer.Do, answer.See = cmp.Or(s.do, plain(rule.Do)), cmp.Or(s.see, rule.See)
		return answer, nil
	}
	answer.Cause = fmt.Sprintf("nothing blocks %s %s", lo.Capitalize(kind), name)
	return answer, nil
}
