// SPDX-License-Identifier: Apache-2.0

// Package rotation chooses which part of a search one run of the tests does. The searches
// are too long for every run: each day has another part, and `make test-nightly` does all.
package rotation

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// Variable is the environment variable with the part: "all", or a number, which is else
// that of the day (UTC).
const Variable = "ROTATION"

// All reports whether everything is done.
func All() bool { return os.Getenv(Variable) == "all" }

// Takes reports whether run number i of a search belongs to the part that is done, if the
// search is divided into that many parts.
func Takes(t testing.TB, parts, i int) bool {
	t.Helper()
	if All() {
		return true
	}
	number := number(t)
	return i%parts == number%parts
}

// Turn reports whether number i of several has its turn, if each of the parts has its own. Other
// than a search, what is not told its part by the environment does all.
func Turn(parts, i int) bool {
	number, err := strconv.Atoi(os.Getenv(Variable))
	return err != nil || i%parts == number%parts
}

// Part returns which part of a search is done, if the search is divided into that many
// parts.
func Part(t testing.TB, parts int) string {
	t.Helper()
	if All() {
		return "all of it"
	}
	number := number(t)
	return fmt.Sprintf("part %d of %d (%s=%d)", number%parts+1, parts, Variable, number)
}

// Tell lets a test say, if it fails, how to do the same part again.
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
		return int(time.Now().Unix() / int64((24 * time.Hour).Seconds()))
	}
	number, err := strconv.Atoi(value)
	if err != nil || number < 0 {
		t.Fatalf("%s is %q, want a number or all", Variable, value)
	}
	return number
}
