// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

var (
	large = Pool{Source: Source{Kind: "BareMetalHost", Free: available, Consumer: usedBy}, Labels: "size=large"}
	small = Pool{Source: large.Source, Labels: "size=small"}
	ips   = Pool{Source: Source{Kind: "InClusterIPPool", Free: "object.status.ipAddresses.free"}}
)

func TestCountOf(t *testing.T) {
	host := func(name, size string, result result) *counted {
		return &counted{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"size": size}}, result: result}
	}
	objects := []*counted{
		host("a", "large", result{free: 1}), host("b", "large", result{consumer: "m-1"}), host("c", "large", result{}),
		host("d", "small", result{free: 1}), host("e", "broken", result{failed: "free: no such key: status"}),
	}
	got, err := countOf(large, objects)
	if diff := cmp.Diff(Count{Objects: 3, Free: 1, Consumers: sets.New("m-1")}, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	all := large
	all.Labels = ""
	if _, err := countOf(all, objects); err == nil || err.Error() != "BareMetalHost e: free: no such key: status" {
		t.Errorf("got the error %v", err)
	}
	if got, err := countOf(ips, []*counted{host("p", "", result{free: 4, number: true}), host("q", "", result{free: 3, number: true})}); err != nil || got.Free != 7 || !got.Numbers || got.Consumers != nil {
		t.Errorf("got %+v and the error %v", got, err)
	}
}

// Each machine is subtracted once: from its claim until its object.
func TestLedger(t *testing.T) {
	machine := func(name string, linked, provisioned bool, pools ...Pool) Machine {
		return Machine{Offering: "o", Pools: pools, Names: []string{name, name + "-infra"}, Linked: linked, Provisioned: provisioned}
	}
	count := func(free int64, consumers ...string) map[Pool]Count {
		return map[Pool]Count{large: {Objects: 3, Free: free, Consumers: sets.New(consumers...)}}
	}
	for name, tc := range map[string]struct {
		counts   map[Pool]Count
		machines []Machine
		claims   int // without a Machine
		pools    []Pool
		want     int64
		unknown  bool
		wantText string
	}{
		"all are free":                    {counts: count(3), want: 3},
		"none exists":                     {counts: map[Pool]Count{large: {}}, wantText: "there are no BareMetalHosts with labels size=large"},
		"none is free":                    {counts: count(0), wantText: "3 of 3 BareMetalHosts with labels size=large are in use or unavailable"},
		"not counted":                     {counts: map[Pool]Count{}, claims: 2, unknown: true, want: 1<<31 - 1},
		"claims that wait":                {counts: count(3), claims: 2, want: 1},
		"claims for all":                  {counts: count(3), claims: 3, wantText: "3 of 3 BareMetalHosts with labels size=large are free, for 3 machines that are being launched"},
		"more claims than hosts":          {counts: count(1), claims: 3, want: -2},
		"a Machine without a host":        {counts: count(3), machines: []Machine{machine("m", true, false, large)}, want: 2},
		"a Machine that a host names":     {counts: count(2, "m"), machines: []Machine{machine("m", true, false, large)}, want: 2},
		"a host names the infrastructure": {counts: count(2, "m-infra"), machines: []Machine{machine("m", true, false, large)}, want: 2},
		"a provisioned Machine":           {counts: count(2), machines: []Machine{machine("m", true, true, large)}, want: 2},
		"a host of another Cluster":       {counts: count(2, "x"), machines: []Machine{machine("m", true, false, large)}, want: 1},
		"a spare Machine without a host":  {counts: count(3), machines: []Machine{machine("m", false, false, large)}, want: 3},
		"a spare Machine for a claim":     {counts: count(3), machines: []Machine{machine("m", false, false, large)}, claims: 1, want: 2},
		"a spare Machine with a host":     {counts: count(0, "m"), machines: []Machine{machine("m", false, false, large)}, want: 1},
		"it serves the claim that waits":  {counts: count(0, "m"), machines: []Machine{machine("m", false, false, large)}, claims: 1, wantText: "in use"},
		"a Machine of another pool":       {counts: count(3), machines: []Machine{{Offering: "p", Pools: []Pool{small}, Linked: true}}, want: 3},
		"the scarcest of two":             {counts: map[Pool]Count{large: {Objects: 3, Free: 3}, ips: {Objects: 1, Free: 1, Numbers: true}}, pools: []Pool{large, ips}, want: 1},
		"of two, the one that is counted": {counts: count(3), pools: []Pool{ips, large}, want: 3},
		"addresses":                       {counts: map[Pool]Count{ips: {Objects: 1, Numbers: true}}, pools: []Pool{ips}, wantText: "1 InClusterIPPools have nothing left"},
		"addresses that are waited for":   {counts: map[Pool]Count{ips: {Objects: 1, Free: 2, Numbers: true}}, pools: []Pool{ips}, claims: 2, wantText: "1 InClusterIPPools have 2 left, for 2 machines"},
		"addresses counted twice until the Machine is provisioned": {counts: map[Pool]Count{ips: {Objects: 1, Free: 4, Numbers: true}}, machines: []Machine{machine("m", true, false, ips)}, pools: []Pool{ips}, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			pools := tc.pools
			if pools == nil {
				pools = []Pool{large}
			}
			ledger := NewLedger(tc.counts, tc.machines)
			for range tc.claims {
				ledger.Take("o", pools)
			}
			got, known := ledger.Left("o", pools)
			if got != tc.want || known == tc.unknown {
				t.Errorf("got %d left, known %t, want %d", got, known, tc.want)
			}
			if text := ledger.Describe(pools); tc.wantText != "" && !strings.Contains(text, tc.wantText) {
				t.Errorf("got %q, want %q", text, tc.wantText)
			}
		})
	}
}
