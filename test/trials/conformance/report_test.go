// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"
)

func TestReadReport(t *testing.T) {
	spec := func(text string, state types.SpecState, message string) types.SpecReport {
		return types.SpecReport{
			LeafNodeType: types.NodeTypeIt, LeafNodeText: text, State: state, RunTime: 2 * time.Second, Failure: types.Failure{Message: message},
		}
	}
	report := []types.Report{{
		SuiteDescription: "Regression", SpecialSuiteFailureReasons: []string{"Interrupted by Timeout"},
		SpecReports: types.SpecReports{
			{LeafNodeType: types.NodeTypeBeforeSuite, State: types.SpecStatePassed},
			spec("Integration passes", types.SpecStatePassed, ""),
			spec("Integration fails", types.SpecStateFailed, "expected\nto be zero"),
			spec("Integration panics", types.SpecStatePanicked, "a panic"),
			spec("Chaos skips itself", types.SpecStateSkipped, "needs a cloud"),
			spec("Performance Provisioning", types.SpecStateSkipped, ""),
			spec("CapacityBuffer is in another shard", types.SpecStateSkipped, ""),
			spec("Something new", types.SpecStateSkipped, ""),
		},
	}}
	data, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readReport(file, shards[0], false)
	if err != nil {
		t.Fatal(err)
	}
	if want := "passed=1 failed=4 skipped=2"; got.String() != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want := []string{
		"Regression: Interrupted by Timeout", "Regression Integration fails (2s): expected", "Regression Integration panics (2s): a panic",
		"Regression Something new: no shard runs it",
	}
	if diff := cmp.Diff(want, got.failed); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
	want = []string{"Regression Chaos skips itself: needs a cloud", "Regression Performance Provisioning: " + skips[0].reason}
	if diff := cmp.Diff(want, got.skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	if len(skipsOf(true)) >= len(skipsOf(false)) {
		t.Error("-full skips as many specs")
	}
}

// The names in the catalog are unique.
func TestCatalog(t *testing.T) {
	names := map[string]bool{}
	for _, instanceType := range catalog().Spec.InstanceTypes {
		names[instanceType.Name] = true
	}
	if want := 3 * 7 * 2; len(names) != want {
		t.Errorf("%d instance types, want %d", len(names), want)
	}
}
