// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
)

func TestLinkRequests(t *testing.T) {
	var entries []audit.Entry
	add := func(agent, subresource string, code, second int) {
		added := entry(t, agent, "patch", "machines", subresource, "/", code)
		added.ObjectRef.Name, added.StageTimestamp = "m", time.Unix(int64(second), 0)
		entries = append(entries, added)
	}
	add(clusterAPIAgent, "", 201, 1)
	add(clusterAPIAgent, "status", 200, 2)
	add(operatorAgent, "", 409, 3)
	add(operatorAgent, "", 200, 5)
	add(clusterAPIAgent, "status", 409, 6)
	add(operatorAgent, "", 200, 9) // marked for deletion
	if diff := cmp.Diff([]time.Duration{4 * time.Second}, linkRequests(entries)); diff != "" {
		t.Errorf("durations (-want +got):\n%s", diff)
	}
	if got := clusterAPIConflicts(entries); got != 1 {
		t.Errorf("got %d conflicts of Cluster API, want 1", got)
	}
}
