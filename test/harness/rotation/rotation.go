// SPDX-License-Identifier: Apache-2.0

// Package rotation selects the part of a search for one run of the tests. The searches are too long
// for every run: `make test` does a part that depends on the committed code, and `make test-nightly` does
// all parts. The part depends on nothing else, such as the day: what has passed passes again.
package rotation

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable with the part: "all", or a number. `make test` derives the
// number from the content of the code. The default is 0.
const Variable = "ROTATION"

// All reports whether all parts are done.
func All() bool { return os.Getenv(Variable) == "all" }

// Takes reports whether run number i of a search belongs to the current part, if the search is
// divided into the given number of parts.
func Takes(t testing.TB, parts, i int) bool {
	t.Helper()
	if All() {
		return true
	}
	number := number(t)
	return i%parts == number%parts
}

// Turn reports whether number i is in the current part, if each part has its own number. Unlike for
// a search, all numbers are done if the environment does not set the part.
func Turn(parts, i int) bool {
	number, err := strconv.Atoi(os.Getenv(Variable))
	return err != nil || i%parts == number%parts
}

// Part returns the current part of a search, if the search is divided into the given number of
// parts.
func Part(t testing.TB, parts int) string {
	t.Helper()
	if All() {
		return "all of it"
	}
	number := number(t)
	return fmt.Sprintf("part %d of %d (%s=%d)", number%parts+1, parts, Variable, number)
}

// Tell makes a failed test print how to do the same part again.
func Tell(t testing.TB) {
	t.Helper()
	if All() {
		return
	}
	number := number(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("this is one part of the search: to do it again, set %s=%d", Variable, number)
		}
	})
}

func number(t testing.TB) int {
	t.Helper()
	value, set := os.LookupEnv(Variable)
	if !set || value == "" {
		return 0
	}
	number, err := strconv.Atoi(value)
	if err != nil || number < 0 {
		t.Fatalf("%s is %q, want a number or all", Variable, value)
	}
	return number
}
