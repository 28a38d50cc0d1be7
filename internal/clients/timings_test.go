// SPDX-License-Identifier: Apache-2.0

package clients

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
}
