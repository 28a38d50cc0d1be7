// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	good := func() *result {
		return &result{N: 10, Up: phase{Seconds: 10}, Down: phase{Seconds: 10}, ClaimWrites: claimWrites{Own: 10, Core: 100}, ProviderID: distribution{P99: 0.5}, Requests: []requestCount{
			{requestKind{"patch", "nodeclaims/status", 200}, 100, 100},
			{requestKind{"patch", "machines", 200}, 10, 20},
			{requestKind{"get", "nodeclaims", 200}, 10, 0},
		}}
	}
	if err := check(good()); err != nil {
		t.Errorf("got %v for a good result", err)
	}
	disturbed := good()
	disturbed.ProviderID.P99, disturbed.Up.CPU = 30, usage{others: 20}
	if err := check(disturbed); err != nil {
		t.Errorf("got %v although other processes used a core", err)
	}
	for name, tc := range map[string]struct {
		change func(*result)
		want   []string
	}{
		"requests": {
			change: func(r *result) { r.Requests[0].Up = 10000 },
			want:   []string{"requests per claim: 1014.00, but at most"},
		},
		"live reads": {
			change: func(r *result) { r.Requests[2].Up = 70 },
			want:   []string{"live reads of claims, Machines, instances and Nodes per claim: 7.00, but at most"},
		},
		"conflicts": {
			change: func(r *result) { r.Requests[1] = requestCount{requestKind{"patch", "machines", 409}, 10, 0} },
			want:   []string{"conflicts of the writes of Machines: 100.0 %, but at most"},
		},
		"writes of Machines and claims": {
			change: func(r *result) { r.Requests[1].Down, r.ClaimWrites.Own = 90, 90 },
			want:   []string{"writes of the Machine per claim: 10.00, but at most", "own code: 9.00, but at most"},
		},
		"writes of the template": {
			change: func(r *result) {
				r.Requests = append(r.Requests, requestCount{requestKind{"patch", "karpentermachinetemplates/status", 200}, 6, 3})
				r.MostTemplateWrites = 7
			},
			want: []string{"writes of the status of the template per claim: 0.90, but at most", "in 10 s: 7.00, but at most"},
		},
		"the provider ID": {
			change: func(r *result) { r.ProviderID.P99 = 30 },
			want:   []string{"Node created → provider ID, p99: 30.00 s, but at most"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			measured := good()
			tc.change(measured)
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
