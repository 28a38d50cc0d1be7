// SPDX-License-Identifier: Apache-2.0

package fleetmetrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

// A template has all series of its counters before a launch fails or stalls.
func TestCountersBeginWithTheirTemplate(t *testing.T) {
	templateEvents().OnAdd(&v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, true)
	ofTemplate := prometheus.Labels{"template": "new"}
	if got := metrics.LaunchFailures.DeletePartialMatch(ofTemplate); got != len(failures) {
		t.Errorf("got %d series of failures, want %d", got, len(failures))
	}
	if got := metrics.LaunchStalls.DeletePartialMatch(ofTemplate); got != len(stalls) {
		t.Errorf("got %d series of stalls, want %d", got, len(stalls))
	}
}

// The counters have all reasons that the condition MachineAvailable can have.
func TestCountersHaveAllReasons(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	row, found := lo.Find(strings.Split(string(page), "\n"), func(line string) bool { return strings.HasPrefix(line, "| `"+v1alpha1.ConditionMachineAvailable+"` |") })
	cells := strings.Split(row, " | ")
	if !found || len(cells) != 5 {
		t.Fatalf("the page has no row of %s with 5 cells: %s", v1alpha1.ConditionMachineAvailable, row)
	}
	reasons := func(cell string, except ...string) []string {
		names := regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cell, -1)
		return lo.Without(lo.Map(names, func(name []string, _ int) string { return name[1] }), except...)
	}
	if diff := cmp.Diff(reasons(cells[3]), slices.Sorted(slices.Values(failures))); diff != "" {
		t.Errorf("failures (-documented +counted):\n%s", diff)
	}
	if diff := cmp.Diff(reasons(cells[4], v1alpha1.ReasonResumed), slices.Sorted(slices.Values(stalls))); diff != "" {
		t.Errorf("stalls (-documented +counted):\n%s", diff)
	}
}
