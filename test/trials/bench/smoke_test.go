// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

func TestCheck(t *testing.T) {
	good := func() []result {
		ours := result{
			Variant: operator.name, N: 10, Offerings: 1, Every: smokePaced.every,
			Up: phase{Seconds: 10, CPU: usage{stack.Operator: 2}}, Down: phase{Seconds: 10}, ClaimWrites: claimWrites{Own: 10, Core: 100},
			Steps: []step{{claimToReplicas, distribution{P50: 0.1}}, {machineToLink, distribution{P50: 0.1}}, {machineIDToClaimID, distribution{P50: 0.1}}},
			Requests: []requestCount{
				{requestKind{operatorAgent, "patch", "nodeclaims/status", 200}, 100, 100},
				{requestKind{operatorAgent, "patch", "machines", 200}, 10, 20},
				{requestKind{operatorAgent, "get", "nodeclaims", 200}, 10, 0},
				{requestKind{clusterAPIAgent, "patch", "machines/status", 200}, 100, 50},
			},
		}
		kwoks := result{
			Variant: kwok.name, N: 10, Offerings: 1, Every: smokePaced.every, Up: phase{Seconds: 10, CPU: usage{stack.KarpenterKwok: 1}},
			Requests: []requestCount{{requestKind{"karpenter", "patch", "nodeclaims/status", 200}, 100, 100}},
		}
		return []result{kwoks, ours}
	}
	if err := check(good()); err != nil {
		t.Errorf("got %v for good results", err)
	}
	for name, tc := range map[string]struct {
		change func(*result)
		want   []string
	}{
		"requests": {
			change: func(r *result) { r.Requests[0].Up = 10000 },
			want:   []string{"requests of karpenter-capi per claim, 10 Pods, one every 2s: 1014.00, but at most", "less kwok's, 10 Pods, one every 2s: 994.00, but at most"},
		},
		"requests of Cluster API": {
			change: func(r *result) { r.Requests[3].Up = 10000 },
			want:   []string{"requests of cluster-api-core per claim, 10 Pods, one every 2s: 1005.00, but at most"},
		},
		"CPU": {
			change: func(r *result) { r.Up.CPU[stack.Operator] = 9 },
			want:   []string{"CPU of the process divided by kwok's, 10 Pods, one every 2s: 9.00, but at most"},
		},
		"live reads": {
			change: func(r *result) { r.Requests[2].Up, r.Requests[0].Up = 20, 90 },
			want:   []string{"live reads of claims, Machines, instances and Nodes per claim, 10 Pods, one every 2s: 2.00, but at most"},
		},
		"conflicts": {
			change: func(r *result) {
				r.Requests[1] = requestCount{requestKind{operatorAgent, "patch", "machines", 409}, 10, 0}
			},
			want: []string{"conflicts of the writes of Machines, 10 Pods, one every 2s: 100.0 %, but at most"},
		},
		"writes of the template": {
			change: func(r *result) {
				r.Requests = append(r.Requests, requestCount{requestKind{operatorAgent, "patch", "karpentermachinetemplates/status", 200}, 6, 3})
				r.MostTemplateWrites = 7
			},
			want: []string{"writes of the status of the template per claim, 10 Pods, one every 2s: 0.90, but at most", "in 10 s, 10 Pods, one every 2s: 7.00, but at most"},
		},
		"a step is not observed": {
			change: func(r *result) { r.Steps = r.Steps[:2] },
			want:   []string{"Machine has its provider ID → claim has it, p50, 10 Pods, one every 2s: +Inf s, but at most"},
		},
		"a late link": {
			change: func(r *result) { r.Steps[1].Distribution.P50 = 2 },
			want:   []string{"Machine created → link, p50, 10 Pods, one every 2s: 2.00 s, but at most"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			measured := good()
			tc.change(&measured[1])
			err := check(measured)
			if err == nil {
				t.Fatal("got no error")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tc.want) {
				t.Errorf("got %q, want %d bounds", lines, len(tc.want))
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q", err, want)
				}
			}
		})
	}
}
