// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Describe describes a change in one line, limited to what the checks use; empty if none of that changed.
func (c *Checker) Describe(change Change, before *Object) string {
	var news []string
	switch {
	case change.Object == nil:
		news = []string{"was removed"}
	case before == nil:
		news = append([]string{"was created"}, c.news(&Object{}, change.Object)...)
	default:
		news = c.news(before, change.Object)
	}
	if len(news) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d %s %s: %s", change.Seen.Format(timeFormat), change.Revision, change.Kind, change.Key, strings.Join(news, "; "))
}

// news returns the differences.
func (c *Checker) news(before, after *Object) []string {
	var news []string
	for _, difference := range []struct {
		there bool
		text  string
	}{
		{before.Claim != after.Claim, fmt.Sprintf("serves %s (before: %s)",
			cmp.Or(c.claimName(after.Claim, after.ClaimName), "no claim"), cmp.Or(c.claimName(before.Claim, before.ClaimName), "none"))},
		{before.ProviderID != after.ProviderID, fmt.Sprintf("provider ID %s (before: %s)", after.ProviderID, cmp.Or(before.ProviderID, "none"))},
		{before.Node != after.Node, "Node " + cmp.Or(after.Node, "none")},
		{before.Failed != after.Failed, "infrastructure " + cmp.Or(after.Failed, "ready")},
		{before.Spare != after.Spare, fmt.Sprintf("spare: %t", after.Spare)},
		{before.Replicas != after.Replicas, fmt.Sprintf("replicas %d (before: %d)", after.Replicas, before.Replicas)},
		{!slices.Equal(before.True, after.True), "true: " + strings.Join(after.True, " ")},
		{!before.Chosen && after.Chosen, "is marked for deletion"},
		{before.Deleted.IsZero() && !after.Deleted.IsZero(), "is being deleted"},
		{!after.Deleted.IsZero() && !slices.Equal(before.Finalizers, after.Finalizers), "finalizers: " + cmp.Or(strings.Join(after.Finalizers, " "), "none")},
	} {
		if difference.there {
			news = append(news, difference.text)
		}
	}
	return news
}
