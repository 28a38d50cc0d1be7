// SPDX-License-Identifier: Apache-2.0

// Package budget keeps the status of a KarpenterMachineTemplate small enough to be
// written, whatever happens in a cluster.
//
// etcd refuses objects above 1.5 MiB. A template of 800 instance types with 6 offerings
// each, which a user applies on the server side, needs 1.3 MB of that for its spec and
// the managed fields of its spec. So the status gets a fixed number of bytes, and each
// of its lists a share. The lists are atomic, because the managed fields of other lists
// take as much as the lists. What finds no room in a list still has its effect: the
// reconcilers do not depend on it, or the Catalog has it in memory.
//
// Bytes are those of the JSON that the API server stores.
package budget

import (
	"encoding/json"
	"strings"

	"github.com/samber/lo"
)

// Status is the size of the largest status.
const Status = conditions*Message + Unavailable + Invalid + Observed + Limited + Resources + rest

// What one message in the status may have.
const (
	// Message is that of a condition.
	Message = 3 << 10
	// Mark is that of an unavailable offering.
	Mark = 256
	// Group is that of invalid offerings.
	Group = 512
)

// The shares of the lists.
const (
	// Unavailable is that of status.unavailableOfferings.
	Unavailable = 80 << 10
	// Invalid is that of status.invalidOfferings.
	Invalid = 16 << 10
	// Observed is that of status.observedCapacity.
	Observed = 48 << 10
	// Limited is that of status.limitedOfferings.
	Limited = 24 << 10
	// Resources is that of status.scalableResources.
	Resources = 24 << 10
)

const (
	// conditions is more than the number of conditions.
	conditions = 12
	// rest is for numbers, the names of fields, and managed fields.
	rest = 6 << 10
)

// Size returns the size of a value of the API.
func Size(value any) int {
	// Encoding such values cannot fail.
	return len(lo.Must(json.Marshal(value)))
}

// Text returns the beginning of a text, of at most size bytes, without what is no UTF-8.
func Text(text string, size int) string {
	text = strings.ToValidUTF8(text, "")
	if quoted(text) <= size {
		return text
	}
	for at, r := range text {
		if size -= quoted(string(r)); size < 0 {
			return text[:at]
		}
	}
	return text
}

// quoted is the size of a text without its quotes.
func quoted(text string) int { return Size(text) - 2 }

// Fit returns how many of the first items together have at most size bytes as a list.
func Fit[T any](items []T, size int) int {
	size -= 2 // brackets
	for i := range items {
		if size -= Size(items[i]) + 1; size < -1 { // no comma follows the last one
			return i
		}
	}
	return len(items)
}
