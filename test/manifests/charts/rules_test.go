// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// alertTests is a file of unit tests of rules (https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/).
type alertTests struct {
	Tests []struct {
		Cases []struct {
			Alert string `json:"alertname"`
			Fires []any  `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	}
}

// Prometheus accepts the rules, and each alert fires when it should, with the labels and the text that testdata/alerts has.
func TestAlertsFire(t *testing.T) {
	dir := t.TempDir()
	promtool(t, dir, "rules.yaml", monitoringOf(t, MonitoringValues()).Rules, "check", "rules", "--lint=all", "--lint-fatal")
	for name, content := range alertFiles(t) {
		t.Run(name, func(t *testing.T) { promtool(t, dir, name, content, "test", "rules") })
	}
}

// promtool runs promtool with a file, which it writes to a folder.
func promtool(t *testing.T, dir, file string, content []byte, arguments ...string) {
	t.Helper()
	binary, err := Tool("promtool")
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, file)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), binary, append(arguments, file)...).CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", arguments, err, output)
	}
}

// Each alert has a case in which it fires, and one in which it does not.
func TestAlertsHaveCases(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for name, content := range alertFiles(t) {
		var file alertTests
		if err := yaml.Unmarshal(content, &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, group := range file.Tests {
			for _, c := range group.Cases {
				fires[c.Alert] = fires[c.Alert] || len(c.Fires) > 0
				silent[c.Alert] = silent[c.Alert] || len(c.Fires) == 0
			}
		}
	}
	alerts := monitoringOf(t, MonitoringValues()).Alerts
	if len(alerts) == 0 {
		t.Error("the chart has no alerts")
	}
	for _, alert := range alerts {
		if !fires[alert.Alert] {
			t.Errorf("testdata/alerts has no case in which %s fires", alert.Alert)
		}
		if !silent[alert.Alert] {
			t.Errorf("testdata/alerts has no case in which %s does not fire", alert.Alert)
		}
		delete(fires, alert.Alert)
	}
	for name := range fires {
		t.Errorf("the chart has no alert %s", name)
	}
}

// alertFiles returns the files of testdata/alerts by their names.
func alertFiles(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/alerts/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("testdata/alerts has no files: %v", err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}
