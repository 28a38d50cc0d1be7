// SPDX-License-Identifier: Apache-2.0

// Package property checks that something holds for random values. It runs pgregory.net/rapid, which shrinks the value of a
// failure: it prints one that fails alike with fewer and smaller parts.
//
// As in all searches, the values depend only on the committed code (test/harness/rotation). Flags of rapid go first:
// a failure prints the -rapid.seed that repeats it, and -rapid.checks=1000000 searches longer.
package property

import (
	"flag"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/test/harness/rotation"
)

// parts is the number of seeds. ROTATION=all checks as many values from each.
const parts = 10

// Check fails the test if a property fails for one of the given number of values. The property must draw all that is
// random from its parameter. The numbers that it draws shrink toward 0, booleans toward false, lists toward empty ones, and
// choices toward the first.
//
// Check is not for parallel tests, because rapid has flags only.
func Check(t *testing.T, checks int, property func(*rapid.T)) {
	t.Helper()
	rotation.Tell(t)
	// rapid writes failures below the working directory, and repeats them. Then a test would depend on earlier runs.
	defer set(t, "nofailfile", "true")()
	defer set(t, "checks", strconv.Itoa(checks))()
	for part := range parts {
		if rotation.Takes(t, parts, part) {
			checkPart(t, part, property)
		}
	}
}

func checkPart(t *testing.T, part int, property func(*rapid.T)) {
	t.Helper()
	// rapid adds numbers to the seed, and gets a random one for 0. No two parts have a value in common.
	defer set(t, "seed", strconv.FormatUint(uint64(part+1)<<40, 10))()
	rapid.Check(t, property)
}

// set sets a flag of rapid that has its default, and returns a function that undoes that.
func set(t *testing.T, name, value string) func() {
	t.Helper()
	setting := flag.Lookup("rapid." + name)
	before := setting.Value.String()
	if before != setting.DefValue {
		return func() {}
	}
	if err := setting.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	return func() { _ = setting.Value.Set(before) }
}

// OneIn returns a generator of booleans, of which about one in the given number is true.
func OneIn(number int) *rapid.Generator[bool] {
	return rapid.Map(rapid.IntRange(1, number), func(i int) bool { return i == number })
}
