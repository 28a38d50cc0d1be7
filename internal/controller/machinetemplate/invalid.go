// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// invalidOfferings returns the problems of status.invalidOfferings.
func invalidOfferings(template *v1alpha1.KarpenterMachineTemplate) []catalog.Problem {
	return lo.Map(template.Status.InvalidOfferings, func(group v1alpha1.InvalidOfferings, _ int) catalog.Problem {
		which := "offering " + strings.Join(group.Examples, ", ")
		if group.Count > 1 {
			which = fmt.Sprintf("%d offerings, such as %s", group.Count, strings.Join(group.Examples, ", "))
		}
		return catalog.Problem{Reason: group.Reason, Message: which + ": " + group.Message}
	})
}
