// SPDX-License-Identifier: Apache-2.0

package partition

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/test/harness/proxy"
)

func TestTable(t *testing.T) {
	rows := []row{
		{fault: proxy.Cut, side: "management", claims: 31, caughtUp: 43400 * time.Millisecond},
		{fault: proxy.Refuse, side: "workload", claims: 7, doubled: 1, lost: 2, wrong: 3},
	}
	rows[1].problem("%d more", 1)
	want := `
fault   side          claims in flight   doubled  lost  wrong deletes  s until caught up
cut     management                  31         0     0              0                 43
refuse  workload                     7         1     2              3              never`
	if diff := cmp.Diff(want, strings.Join(table(rows), "\n")); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("faults=2 claims=38 doubled=1 lost=2 wrong_deletes=3", counts(rows)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("refuse of the workload cluster: 1 more", problems(rows)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	chosen, err := parse([]string{"-faults", "cut,refuse", "-seconds", "25", "-kind", "MachinePool", "-seed", "1"})
	if err != nil {
		t.Fatal(err)
	}
	want := options{faults: []proxy.Mode{proxy.Cut, proxy.Refuse}, lasting: 25 * time.Second, pods: 60, seed: 1, kind: "MachinePool"}
	if diff := cmp.Diff(want, chosen, cmp.AllowUnexported(options{})); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	for _, args := range [][]string{{"-faults", "pass"}, {"-faults", ""}, {"-seconds", "0"}, {"more"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
