// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEnd(t *testing.T) {
	broken := errors.New("the connection broke")
	for name, tc := range map[string]struct {
		from io.Reader
		want string
		err  error
	}{
		"a short log":             {from: strings.NewReader("one\ntwo\n"), want: "one\ntwo\n"},
		"exactly as long":         {from: strings.NewReader("12345678\n9\n"), want: "12345678\n9\n"},
		"a long log":              {from: strings.NewReader("first line\nsecond\nthird\n"), want: "third\n"},
		"a very long log":         {from: strings.NewReader(strings.Repeat("line\n", 10000)), want: "line\nline\n"},
		"byte by byte":            {from: iotest.OneByteReader(strings.NewReader(strings.Repeat("line\n", 100))), want: "line\nline\n"},
		"nothing":                 {from: strings.NewReader("")},
		"an error after a line":   {from: io.MultiReader(strings.NewReader("one\n"), iotest.ErrReader(broken)), want: "one\n", err: broken},
		"one line that is longer": {from: strings.NewReader(strings.Repeat("x", 100)), want: strings.Repeat("x", 11)},
	} {
		got, err := end(tc.from, 11)
		if string(got) != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: got %q and the error %v, want %q and %v", name, got, err, tc.want, tc.err)
		}
	}
}
