// SPDX-License-Identifier: Apache-2.0

package generated

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReplace(t *testing.T) {
	const document = "before\n<!-- begin generated: a -->\nold\n<!-- end generated: a -->\nbetween\n" +
		"<!-- begin generated: b -->\n<!-- end generated: b -->\nafter\n"
	want := "before\n<!-- begin generated: a -->\n\nnew\n\n<!-- end generated: a -->\nbetween\n" +
		"<!-- begin generated: b -->\n<!-- end generated: b -->\nafter\n"
	got, err := Replace(document, "a", "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	again, err := Replace(got, "a", "new\n")
	if err != nil || again != got {
		t.Errorf("a second replacement changed the document: %v\n%s", err, again)
	}
	if _, err := Replace(document, "c", "new"); err == nil {
		t.Error("got no error for a part that the document lacks")
	}
}
