// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// WritesBy returns the writes of a user agent.
func WritesBy(agent string, entries []Entry) []Entry {
	var writes []Entry
	for _, entry := range entries {
		if entry.By(agent) && entry.Write() {
			writes = append(writes, entry)
		}
	}
	return writes
}

// Deleter returns the request that was the first to delete an object; nil if the log has none.
func Deleter(resource, name string, entries []Entry) *Entry {
	for i := range entries {
		if e := &entries[i]; e.Verb == "delete" && e.ObjectRef.Resource == resource && e.ObjectRef.Name == name && e.Succeeded() {
			return e
		}
	}
	return nil
}

// Count returns how many requests of each sort there are, the most frequent first.
func Count(entries []Entry) []string {
	counts := map[string]int{}
	for i := range entries {
		counts[entries[i].What()]++
	}
	sorts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, sort := range sorts {
		sorts[i] = fmt.Sprintf("%d × %s", counts[sort], sort)
	}
	return sorts
}
