// SPDX-License-Identifier: Apache-2.0

package property

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/test/harness/rotation"
)

// The values are the same in each run of a part, and differ between parts.
func TestThePartDecides(t *testing.T) {
	draw := func(part string) (values []int) {
		t.Setenv(rotation.Variable, part)
		Check(t, 20, func(t *rapid.T) { values = append(values, rapid.Int().Draw(t, "value")) })
		return values
	}
	first := draw("3")
	if diff := cmp.Diff(first, draw("13")); diff != "" || len(first) != 20 {
		t.Errorf("20 values of the same part (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, draw("4")) {
		t.Errorf("two parts have the same values: %v", first)
	}
	if all := draw("all"); len(all) != 20*parts || !cmp.Equal(first, all[60:80]) {
		t.Errorf("all parts have %d values, want %d, with those of the fourth", len(all), 20*parts)
	}
}

func TestOneIn(t *testing.T) {
	t.Setenv(rotation.Variable, "0")
	for _, number := range []int{2, 4, 16} {
		hits := 0
		Check(t, 8000, func(t *rapid.T) {
			if OneIn(number).Draw(t, "is") {
				hits++
			}
		})
		if want := 8000 / number; hits < want/2 || hits > want*2 {
			t.Fatalf("one in %d: %d of 8000, want about %d", number, hits, want)
		}
	}
}
