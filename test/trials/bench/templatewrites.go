// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
)

// burst is the period in which writes of the status of the template are counted. Each of them makes Karpenter core look
// at all claims, so the operator writes what changes with each claim only once in this period.
const burst = 10 * time.Second

// mostTemplateWrites returns the largest number of writes of the template's status by the operator in one burst.
func mostTemplateWrites(entries []audit.Entry) int {
	var times []time.Time
	for i := range entries {
		if entry := &entries[i]; entry.By(operatorAgent) && isTemplateWrite(kindOf(entry)) {
			times = append(times, entry.StageTimestamp)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	most := 0
	for i := range times {
		in := 0
		for _, at := range times[i:] {
			if at.Sub(times[i]) < burst {
				in++
			}
		}
		most = max(most, in)
	}
	return most
}

// isTemplateWrite reports whether the request writes the status of a KarpenterMachineTemplate.
func isTemplateWrite(kind requestKind) bool {
	return kind.Resource == "karpentermachinetemplates/status" && isWrite(kind)
}
