// SPDX-License-Identifier: Apache-2.0

// Package budget limits the size of the status of a KarpenterMachineTemplate, so that it
// can always be written.
//
// etcd rejects objects above 1.5 MiB, and each write of a status goes to every watch.
// Therefore the status has a fixed number of bytes, and each of its lists has a share. The lists are atomic, because the managed fields of
// other lists are as large as the lists. An item that does not fit into a list still has
// its effect: the reconcilers do not depend on the list, or the Catalog has the item in
// memory.
//
// Sizes are in bytes of the JSON that the API server stores.
package budget

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"
)

// Status is the maximum size of the status.
const Status = Conditions*Message + Unavailable + Invalid + Observed + Devices + Limited + Resources + Rollout + rest

// The maximum sizes of messages in the status.
const (
	// Message is the maximum for a condition.
	Message = 3 << 10
	// Mark is the maximum for an unavailable offering.
	Mark = 256
	// Group is the maximum for a group of invalid offerings.
	Group = 512
)

// The shares of the lists.
const (
	// Unavailable is the share of status.unavailableOfferings.
	Unavailable = 80 << 10
	// Invalid is the share of status.invalidOfferings.
	Invalid = 16 << 10
	// Observed is the share of status.observedCapacity.
	Observed = 36 << 10
	// Devices is the share of status.observedDevices.
	Devices = 12 << 10
	// Limited is the share of status.limitedOfferings.
	Limited = 21 << 10
	// Resources is the share of status.scalableResources.
	Resources = 24 << 10
	// Rollout is the share of status.rollout.
	Rollout = Canary + 2*Spec + Stop
	// Canary is the share of status.rollout.canary.
	Canary = 5 << 10
	// Spec is the maximum for a spec in status.rollout.history.
	Spec = 4 << 10
	// Stop is the maximum for status.rollout.message.
	Stop = 512
)

const (
	// Conditions is the maximum number of conditions.
	Conditions = 16
	// rest is the share of numbers, the names of fields, and managed fields.
	rest = 6 << 10
)

// Size returns the size of a value of the API.
func Size(value any) int {
	// Encoding such values cannot fail.
	return len(lo.Must(json.Marshal(value)))
}

// Text returns the beginning of a text, at most size bytes, without invalid UTF-8.
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

// Ends returns the beginning and the end of a text, at most size bytes: the cause of an error is at its end.
func Ends(text string, size int) string {
	const gap = " … "
	text = strings.ToValidUTF8(text, "")
	if quoted(text) <= size || size < len(gap) {
		return Text(text, size)
	}
	beginning := strings.TrimSpace(Text(text, (size-len(gap))/3))
	size -= quoted(beginning) + len(gap)
	end := len(text)
	for end > 0 {
		r, length := utf8.DecodeLastRuneInString(text[:end])
		if size -= quoted(string(r)); size < 0 {
			break
		}
		end -= length
	}
	return beginning + gap + strings.TrimSpace(text[end:])
}

// quoted returns the size of a text without its quotes.
func quoted(text string) int { return Size(text) - 2 }

// Fit returns how many of the first items fit into a list of at most size bytes.
func Fit[T any](items []T, size int) int {
	size -= 2 // brackets
	for i := range items {
		if size -= Size(items[i]) + 1; size < -1 { // no comma follows the last one
			return i
		}
	}
	return len(items)
}

// Names returns the first names in alphabetical order, at most so many, and how many others there are.
func Names(names []string, most int) string {
	names = slices.Sorted(slices.Values(names))
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
