// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		secrets, bases string
		problem        string
		allows         []string // names of Secrets, KIND/NAME of base templates
		rejects        []string
		label          labels.Set
	}{
		"nothing":                   {rejects: []string{"workers"}},
		"names":                     {secrets: "workers, join ,", allows: []string{"workers", "join"}, rejects: []string{"worker", "workers-2"}},
		"a pattern":                 {secrets: "prod-*-join", allows: []string{"prod-a-join", "prod--join"}, rejects: []string{"prod-join", "dev-a-join"}},
		"all":                       {secrets: "*", allows: []string{"workers", "a.b"}},
		"a label with a value":      {secrets: "workers,label:example.com/a=b", allows: []string{"workers"}, label: labels.Set{"example.com/a": "b"}},
		"a label":                   {secrets: "label:a", label: labels.Set{"a": "anything"}},
		"two labels":                {secrets: "label:a,label:b", problem: `expected at most one label, found a second one in "label:b"`},
		"a label that is none":      {secrets: "label:a b", problem: "--allowed-secrets: expected label:KEY[=VALUE]"},
		"a selector of more":        {secrets: "label:a=b=c", problem: "--allowed-secrets: expected label:KEY[=VALUE]"},
		"a name in upper case":      {secrets: "Workers", problem: "--allowed-secrets: expected the name of a Secret"},
		"a name with another class": {secrets: "[a-z]", problem: "--allowed-secrets: expected the name of a Secret"},
		"base templates":            {bases: "KubeadmConfigTemplate/workers-*,AWSMachineTemplate/*", allows: []string{"KubeadmConfigTemplate/workers-a", "AWSMachineTemplate/x"}, rejects: []string{"KubeadmConfigTemplate/control-plane", "AWSMachine/x"}},
		"any kind":                  {bases: "*/workers", allows: []string{"KubeadmConfigTemplate/workers"}, rejects: []string{"KubeadmConfigTemplate/other"}},
		"a base without a name":     {bases: "KubeadmConfigTemplate", problem: "--allowed-base-templates: expected KIND/NAME"},
		"a base without a kind":     {bases: "/workers", problem: "--allowed-base-templates: expected KIND/NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := Parse(tc.secrets, tc.bases, "")
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Fatalf("got error %v, want %q", err, tc.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			allows := func(what string) bool {
				kind, name, isBase := strings.Cut(what, "/")
				if isBase {
					return rules.baseNamed(schema.GroupKind{Kind: kind}, name)
				}
				return rules.secretNamed(what)
			}
			for _, what := range tc.allows {
				if !allows(what) {
					t.Errorf("%s is not allowed", what)
				}
			}
			for _, what := range tc.rejects {
				if allows(what) {
					t.Errorf("%s is allowed", what)
				}
			}
			if (rules.SecretLabel != nil) != (tc.label != nil) || tc.label != nil && (!rules.SecretLabel.Matches(tc.label) || rules.SecretLabel.Matches(labels.Set{"x": "y"})) {
				t.Errorf("got the label %v, want one that matches only %v", rules.SecretLabel, tc.label)
			}
		})
	}
}
