// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
)

func TestMostTemplateWrites(t *testing.T) {
	at := func(agent, subresource string, code int, offset time.Duration) audit.Entry {
		e := entry(t, agent, "patch", "karpentermachinetemplates", subresource, "/apis/karpenter.cluster.x-k8s.io/v1alpha1/karpentermachinetemplates/general/status", code)
		e.StageTimestamp = time.Unix(1000, 0).Add(offset)
		return e
	}
	write := func(offset time.Duration) audit.Entry { return at(operatorAgent, "status", 200, offset) }
	for name, tc := range map[string]struct {
		entries []audit.Entry
		want    int
	}{
		"none":                {want: 0},
		"far apart":           {entries: []audit.Entry{write(0), write(burst), write(2 * burst)}, want: 1},
		"close, not in order": {entries: []audit.Entry{write(0), write(3 * burst), write(21 * time.Second), write(29 * time.Second)}, want: 3},
		"of others": {entries: []audit.Entry{
			write(0), at("cluster-api-core", "status", 200, 1), at(operatorAgent, "", 200, 2), at(operatorAgent, "status", 429, 3),
		}, want: 1},
		"that conflicts": {entries: []audit.Entry{write(0), at(operatorAgent, "status", 409, 1)}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mostTemplateWrites(tc.entries); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
