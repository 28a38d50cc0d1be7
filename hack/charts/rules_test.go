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
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %NAME%}\nrules:\n- {apiGroups: [%GROUPS%], resources: [things], verbs: [get]}\n"
	for name, tc := range map[string]struct {
		role, groups string
		want         map[string]string // the groups that each file has
		wantError    string
	}{
		"one cluster":        {role: "manager-role", groups: `""`, want: map[string]string{"workload.yaml": `""`}},
		"groups of both":     {role: "manager-role", groups: "cluster.x-k8s.io, karpenter.sh", want: map[string]string{"management.yaml": "cluster.x-k8s.io", "workload.yaml": "karpenter.sh"}},
		"cluster-wide":       {role: "manager-role", groups: "apiextensions.k8s.io", want: map[string]string{"management-cluster.yaml": "apiextensions.k8s.io"}},
		"an unknown group":   {role: "manager-role", groups: "example.com", wantError: `"example.com": add the group to a file in hack/charts/rules.go`},
		"any group, of core": {role: "karpenter-core-role", groups: "example.com", want: map[string]string{"karpenter-core.yaml": "example.com"}},
		"an unknown role":    {role: "new-role", groups: `""`, wantError: "no file for the ClusterRole new-role"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := strings.NewReplacer("%NAME%", tc.role, "%GROUPS%", tc.groups).Replace(role)
			if err := os.WriteFile(filepath.Join(dir, "role.yaml"), []byte(text), 0o600); err != nil {
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
			for file, group := range tc.want {
				want[file] = header(dir) + "- apiGroups:\n  - " + group + "\n  resources:\n  - things\n  verbs:\n  - get\n"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
