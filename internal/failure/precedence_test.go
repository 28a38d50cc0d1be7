// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The gravest failure of an object counts, wherever it is among the conditions, and of equal ones the first.
func TestTheGravestConditionCounts(t *testing.T) {
	const quota, capacity, failed, waiting = "QuotaExceeded", "SkuNotAvailable", "InstanceErrored", "WaitingForBootstrapData"
	for name, tc := range map[string]struct {
		reasons []string
		want    string // empty for no failure
	}{
		"quota first":           {[]string{quota, capacity, failed}, quota},
		"quota last":            {[]string{failed, capacity, quota}, quota},
		"quota between":         {[]string{capacity, quota, failed}, quota},
		"before others":         {[]string{capacity, waiting}, capacity},
		"after others":          {[]string{waiting, capacity}, capacity},
		"two of one kind":       {[]string{"ZonalAllocationFailed", capacity}, "ZonalAllocationFailed"},
		"nothing but a problem": {[]string{waiting}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var conditions []any
			for _, reason := range tc.reasons {
				conditions = append(conditions, map[string]any{"type": reason, "status": "False", "reason": reason})
			}
			object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
			var got string
			if failure := OfInfrastructure(object); failure != nil {
				got = failure.Message
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A terminal failure counts while the infrastructure is not ready, whatever else it reports.
func TestATerminalFailureThatIsReported(t *testing.T) {
	machine := &clusterv1.Machine{}
	machine.Status.Conditions = append(machine.Status.Conditions, *notReady("Creating", "waiting"))
	machine.Status.Conditions[0].Type = clusterv1.MachineInfrastructureReadyCondition
	machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{}
	if got := Of(machine); got != nil {
		t.Errorf("without a terminal failure: got %v", got)
	}
	machine.Status.Deprecated.V1Beta1 = &clusterv1.MachineV1Beta1DeprecatedStatus{FailureMessage: new("disk not found")} //nolint:staticcheck // Providers set it.
	if got := Of(machine); got == nil || got.Kind != MachineFailed || got.Message != "disk not found" {
		t.Errorf("with a terminal failure: got %v", got)
	}
}

func TestContainsWords(t *testing.T) {
	for text, want := range map[string]bool{
		"quotaexceeded":                   true,
		"code=quotaexceeded.":             true,
		"noquotaexceeded":                 false,
		"quotaexceededyet":                false,
		"quotaexceeded2":                  false,
		"2quotaexceeded":                  false,
		"no_quotaexceeded":                false,
		"quotaexceeded_yet":               false,
		"ßquotaexceeded":                  false,
		"notquotaexceeded, quotaexceeded": true,
		"quota exceeded":                  false,
		"":                                false,
	} {
		if got := containsWords(text, "quotaexceeded"); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}
