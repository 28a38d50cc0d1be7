// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRuleFiles(t *testing.T) {
	role := func(kind, name string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nrules:\n- {apiGroups: [" + name + "], resources: [things], verbs: [get]}\n"
	}
	rules := func(names ...string) string {
		text := ""
		for _, name := range names {
			text += "- apiGroups:\n  - " + name + "\n  resources:\n  - things\n  verbs:\n  - get\n"
		}
		return text
	}
	for name, tc := range map[string]struct {
		text      string
		want      map[string]string
		wantError string
	}{
		"one role":         {text: role("ClusterRole", "workload-role"), want: map[string]string{"workload.yaml": rules("workload-role")}},
		"another kind":     {text: role("ServiceAccount", "workload-role"), want: map[string]string{}},
		"several in order": {text: role("ClusterRole", "management-role") + "---\n" + role("Role", "leader-election-role"), want: map[string]string{"management.yaml": rules("management-role"), "leader-election.yaml": rules("leader-election-role")}},
		"an unknown role":  {text: role("ClusterRole", "new-role"), wantError: "no file for the role new-role"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "role.yaml"), []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ruleFiles(dir)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("got %v, want %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for file, content := range tc.want {
				want[file] = header(dir) + content
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
