// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestForgetRemovesTheSeriesOfOneTemplate(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		LaunchPhase.WithLabelValues(name, "link").Observe(1)
		LaunchFailures.WithLabelValues(name, "QuotaExceeded").Inc()
		LaunchStalls.WithLabelValues(name, "Blocked").Inc()
	}
	Forget("a")
	if got := testutil.CollectAndCount(LaunchPhase) + testutil.CollectAndCount(LaunchFailures) + testutil.CollectAndCount(LaunchStalls); got != 3 {
		t.Errorf("%d series remain, want the 3 of the other template", got)
	}
}
