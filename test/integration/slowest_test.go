// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// slowest is how many specs are listed.
const slowest = 10

var _ = ReportAfterSuite("the slowest specs", func(report Report) {
	specs := report.SpecReports.WithLeafNodeType(types.NodeTypeIt).WithState(types.SpecStatePassed | types.SpecStateFailed)
	slices.SortFunc(specs, func(a, b SpecReport) int { return cmp.Compare(b.RunTime, a.RunTime) })
	fmt.Printf("\nThe slowest of %d specs, which took %s together:\n", len(specs), total(specs))
	for _, spec := range specs[:min(slowest, len(specs))] {
		fmt.Printf("%8s  %s\n", spec.RunTime.Round(100*time.Millisecond), spec.FullText())
	}
})

// maxFailure is how much of the message of a failure is printed again.
const maxFailure = 1500

// Messages have all objects and come where a spec fails, far above the end of the output.
var _ = ReportAfterSuite("what failed", func(report Report) {
	for _, spec := range report.SpecReports.WithState(types.SpecStateFailureStates) {
		message := spec.FailureMessage()
		fmt.Printf("\n%s %s failed: %s\n", spec.LeafNodeType, spec.FullText(), message[:min(maxFailure, len(message))])
	}
})

// total returns the time that specs took.
func total(specs types.SpecReports) time.Duration {
	var sum time.Duration
	for _, spec := range specs {
		sum += spec.RunTime
	}
	return sum.Round(time.Second)
}
