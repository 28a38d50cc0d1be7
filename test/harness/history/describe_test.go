// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDescribe(t *testing.T) {
	checker := NewChecker(rules)
	var got []string
	for i, step := range []step{
		claim("a"), machine("m"), linkTo("m", "a"),
		change(Machine, "m", func(o *Object) { o.Finalizers = []string{"f"} }),
		change(Machine, "m", func(o *Object) { o.Chosen = true }),
		deleted(Machine, "m"), gone(Machine, "m"),
	} {
		change := step(checker.objects)
		change.Revision, change.Seen = int64(i+1), start
		got = append(got, checker.Describe(change, checker.Observe(change)))
	}
	want := []string{
		"12:00:00.000 1 NodeClaim a: was created; provider ID nodeclaim://uid-a (before: none)",
		"12:00:00.000 2 Machine m: was created",
		"12:00:00.000 3 Machine m: serves a (before: none)",
		"",
		"12:00:00.000 5 Machine m: is marked for deletion",
		"12:00:00.000 6 Machine m: is being deleted",
		"12:00:00.000 7 Machine m: was removed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
