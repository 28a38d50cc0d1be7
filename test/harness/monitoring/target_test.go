// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// Prometheus accepts its configuration.
func TestConfig(t *testing.T) {
	dir := t.TempDir()
	rules := []byte("groups: [{name: a, rules: [{alert: A, expr: up == 0}]}]")
	if err := write(dir, Target{Namespace: "karpenter", Job: "operator", Address: "127.0.0.1:8080", Token: "secret"}, rules); err != nil {
		t.Fatal(err)
	}
	promtool, err := charts.Tool("promtool")
	if err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), promtool, "check", "config", "--lint=all", "--lint-fatal", filepath.Join(dir, configFile)).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, output)
	}
}

func TestFill(t *testing.T) {
	target := Target{Namespace: "karpenter", Job: "operator"}
	for query, tc := range map[string]struct {
		want   string
		failed bool
	}{
		"up": {want: "up"},
		`rate(a{namespace="$namespace", job="$job"}[5m])`: {want: `rate(a{namespace="karpenter", job="operator"}[5m])`},
		`a{node="$node"}`: {want: `a{node="$node"}`, failed: true},
	} {
		got, err := target.Fill(query)
		if got != tc.want || (err != nil) != tc.failed {
			t.Errorf("%s: got %s and the error %v, want %s", query, got, err, tc.want)
		}
	}
}
