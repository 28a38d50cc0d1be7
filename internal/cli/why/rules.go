// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"regexp"
	"strings"
)

// Rule is one cause of a state.
type Rule struct {
	// Name identifies the rule in the output for programs.
	Name string
	// Seen is what a user sees, in Markdown.
	Seen string
	// Do is what a user can do about it, in Markdown. If a condition has a reason, what the reference of conditions says about
	// that reason replaces it.
	Do string
	// See is the page of the documentation with more about it, relative to the repository; empty if there is none.
	See string
	// of reports whether the rule is about a subject, and find returns the cause; empty if it does not apply.
	of   func(*subject) bool
	find func(*subject) (string, error)
}

// Rules are all rules, in the order in which causes precede each other.
var Rules = concat(general, ofPods, ofLaunches, ofMachines, ofNodes, ofTemplates)

func concat(groups ...[]Rule) []Rule {
	var all []Rule
	for _, group := range groups {
		all = append(all, group...)
	}
	return all
}

// Table returns the rules as a table in Markdown, with links relative to the folder docs. title returns the title of a page, or
// of a heading in it.
func Table(title func(see string) (string, error)) (string, error) {
	var b strings.Builder
	b.WriteString("| what you see | what to do |\n| --- | --- |\n")
	for i := range Rules {
		rule := &Rules[i]
		do := rule.Do
		if rule.See != "" {
			text, err := title(rule.See)
			if err != nil {
				return "", fmt.Errorf("rule %s: %w", rule.Name, err)
			}
			do += fmt.Sprintf(". See [%s](%s)", text, strings.TrimPrefix(rule.See, "docs/"))
		}
		fmt.Fprintf(&b, "| %s | %s |\n", rule.Seen, do)
	}
	return b.String(), nil
}

// link matches a link in Markdown.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plain returns Markdown as text for a terminal.
func plain(markdown string) string {
	return strings.ReplaceAll(link.ReplaceAllString(markdown, "$1"), "`", "")
}

// anything is about every subject.
func anything(*subject) bool { return true }

// isPod, isLaunch, and the others say what a rule is about.
func isPod(s *subject) bool { return s.pod != nil }

func isUnserved(s *subject) bool { return s.waits() && s.claim == nil }

func isLaunch(s *subject) bool {
	return s.claim != nil && s.claim.DeletionTimestamp == nil && (s.machine == nil || s.machine.Spec.ProviderID == "") && s.node == nil
}

func isClaim(s *subject) bool { return s.claim != nil && s.claim.DeletionTimestamp == nil }

func isEnding(s *subject) bool { return s.claim != nil && s.claim.DeletionTimestamp != nil }

func isUnlinked(s *subject) bool { return s.kind == "machine" && s.claim == nil }
