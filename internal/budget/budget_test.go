// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

func TestText(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		size int
		want string
	}{
		"short":                     {text: "none left", size: 9, want: "none left"},
		"long":                      {text: "none left", size: 4, want: "none"},
		"no room":                   {text: "none left", size: 0, want: ""},
		"several bytes a character": {text: "äöü", size: 5, want: "äö"},
		"escaped in JSON":           {text: `a "b" <c>`, size: 8, want: `a "b" `},
		"invalid UTF-8":             {text: "a\xffb", size: 6, want: "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Text(tc.text, tc.size); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A text never exceeds the size, is never cut within a character, and is not shorter than necessary.
func TestTextUsesItsSize(t *testing.T) {
	property.Check(t, 2000, func(t *rapid.T) {
		// rapid's texts are short.
		text := strings.Join(rapid.SliceOf(rapid.String()).Draw(t, "text"), "")
		size := rapid.IntRange(0, 255).Draw(t, "size")
		got := Text(text, size)
		if !strings.HasPrefix(text, got) || !utf8.ValidString(got) || Size(got)-2 > size {
			t.Fatalf("%q has %d bytes", got, Size(got)-2)
		}
		_, next := utf8.DecodeRuneInString(text[len(got):])
		if got != text && Size(text[:len(got)+next])-2 <= size {
			t.Fatalf("%q is shorter than necessary", got)
		}
	})
}

// Both ends of a text never exceed the size.
func TestEnds(t *testing.T) {
	const message = "Machine m: AWS refused it: not authorized"
	for size, want := range map[int]string{100: message, 30: "Machine … it: not authorized", 4: "Mach", 0: ""} {
		if got := Ends(message, size); got != want {
			t.Errorf("with %d bytes: got %q, want %q", size, got, want)
		}
	}
	property.Check(t, 2000, func(t *rapid.T) {
		text := strings.ToValidUTF8(strings.Join(rapid.SliceOf(rapid.String()).Draw(t, "text"), ""), "")
		size := rapid.IntRange(0, 255).Draw(t, "size")
		got := Ends(text, size)
		if !utf8.ValidString(got) || Size(got)-2 > size {
			t.Fatalf("%q has %d bytes", got, Size(got)-2)
		}
		beginning, end, cut := strings.Cut(got, " … ")
		if got != text && cut && !strings.Contains(text, " … ") && (!strings.Contains(text, beginning) || !strings.Contains(text, end)) {
			t.Fatalf("%q is not in %q", got, text)
		}
	})
}

// Fit returns the largest number of items whose JSON has at most the size.
func TestFit(t *testing.T) {
	property.Check(t, 2000, func(t *rapid.T) {
		items, size := rapid.SliceOf(rapid.String()).Draw(t, "items"), rapid.IntRange(0, 255).Draw(t, "size")
		count := Fit(items, size)
		if count > 0 && Size(items[:count]) > size || count < len(items) && Size(items[:count+1]) <= size {
			t.Fatalf("%d items fit", count)
		}
	})
}

// The largest status fits into an object whose spec and managed fields have 1.3 MB.
func TestStatusFits(t *testing.T) {
	const etcd, spec = 3 << 19, 1_310_000
	if left := etcd - spec - Status; left < 0 {
		t.Errorf("the largest status has %d bytes, %d too many", Status, -left)
	}
}

func TestNames(t *testing.T) {
	for name, tc := range map[string]struct {
		names []string
		most  int
		want  string
	}{
		"none":        {nil, 2, ""},
		"one":         {[]string{"a"}, 2, "a"},
		"in order":    {[]string{"b", "a"}, 2, "a, b"},
		"one more":    {[]string{"c", "b", "a"}, 2, "a, b and 1 more"},
		"several":     {[]string{"d", "c", "b", "a"}, 1, "a and 3 more"},
		"two of them": {[]string{"a", "a", "b"}, 2, "a, a and 1 more"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Names(tc.names, tc.most); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
