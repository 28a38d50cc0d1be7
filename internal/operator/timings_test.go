// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Other timings cost Machines in use or money: each has its reason in the type.
func TestProductionTimings(t *testing.T) {
	want := Timings{Settle: 10 * time.Second, ReadyPoll: 5 * time.Second, Probe: 15 * time.Second, NoProgress: 30 * time.Second, Recovery: 90 * time.Second, RecoveryLimit: 15 * time.Minute}
	if diff := cmp.Diff(want, ProductionTimings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A process that was paused exits before another one leads.
	if renewDeadline >= leaseDuration || retryPeriod >= renewDeadline {
		t.Errorf("lease of %s, renewed within %s, every %s", leaseDuration, renewDeadline, retryPeriod)
	}
}
