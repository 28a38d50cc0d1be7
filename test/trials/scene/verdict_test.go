// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"testing"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
)

func TestSplit(t *testing.T) {
	deletion := func(machine, agent string) audit.Entry {
		entry := audit.Entry{Verb: "delete", UserAgent: agent}
		entry.ObjectRef.Resource, entry.ObjectRef.Name, entry.ResponseStatus.Code = "machines", machine, 200
		return entry
	}
	requests := []audit.Entry{deletion("by-cluster-api", "cluster-api-core/v1"), deletion("by-us", "karpenter-capi/v1"), deletion("by-us", "cluster-api-core/v1")}
	for machine, violations := range map[string]int{"by-cluster-api": 0, "by-us": 1, "by-nobody-known": 1} {
		got, losses := split([]history.Violation{{Rule: history.WrongDelete, Machine: machine}}, requests)
		if len(got) != violations || len(losses) != 1-violations {
			t.Errorf("%s: violations %v and losses %v, want %d violations", machine, got, losses, violations)
		}
	}
}
