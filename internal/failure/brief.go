// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	"github.com/karpenter-capi/karpenter-capi/internal/budget"
)

// Brief returns the message or, if it is longer than size bytes, a part of it with the words by which Classify knows the failure, or else
// both ends. Clients of clouds put much before the answer of the cloud, such as the number of their attempts and the ID of the request.
func (f Failure) Brief(size int) string {
	switch at := f.known(); {
	case budget.Text(f.Message, size) == f.Message:
		return f.Message
	case at < 0:
		return budget.Ends(f.Message, size)
	case at > size/2:
		return budget.Text("… "+f.Message[at:], size)
	}
	return budget.Text(f.Message, size)
}

// known returns where the clause of the message begins that has the words of a pattern; -1 if none has.
func (f Failure) known() int {
	lower := strings.ToLower(f.Message)
	first := -1
	if len(lower) != len(f.Message) {
		return first // in a few languages, characters have other sizes in lower case
	}
	for _, ofProvider := range patterns {
		for _, p := range ofProvider {
			if at := indexWords(lower, strings.ToLower(p.words)); p.kind == f.Kind && at >= 0 && (first < 0 || at < first) {
				first = at
			}
		}
	}
	if first < 0 {
		return first
	}
	begin := 0
	for _, separator := range []string{": ", ", ", ". "} {
		if at := strings.LastIndex(f.Message[:first], separator); at >= 0 {
			begin = max(begin, at+len(separator))
		}
	}
	return begin
}
