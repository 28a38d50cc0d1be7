// SPDX-License-Identifier: Apache-2.0

package partition

import (
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/test/harness/proxy"
)

// row is the result of one fault on one side.
type row struct {
	fault proxy.Mode
	side  string
	// claims is how many claims were being launched or deleted at some time during the fault.
	claims int
	// doubled counts surplus Machines, lost the claims and Nodes that were removed while Pods ran there, and wrong the
	// Machines that were deleted while they served a claim.
	doubled, lost, wrong int
	// caughtUp is how long after the fault everything had settled.
	caughtUp time.Duration
	problems []string
}

func (r *row) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf("%s of the %s cluster: ", r.fault, r.side)+fmt.Sprintf(format, args...))
}

// table returns the lines of a table.
func table(rows []row) []string {
	const format = "%-8s%-12s%18s%10s%6s%15s%19s"
	lines := []string{"", fmt.Sprintf(format, "fault", "side", "claims in flight", "doubled", "lost", "wrong deletes", "s until caught up")}
	for i := range rows {
		r := &rows[i]
		caughtUp := "never"
		if r.caughtUp > 0 {
			caughtUp = fmt.Sprintf("%.0f", r.caughtUp.Seconds())
		}
		lines = append(lines, fmt.Sprintf(format, r.fault, r.side, fmt.Sprint(r.claims), fmt.Sprint(r.doubled), fmt.Sprint(r.lost), fmt.Sprint(r.wrong), caughtUp))
	}
	return lines
}

// counts returns the sums of all rows.
func counts(rows []row) string {
	sum := func(of func(row) int) int { return lo.SumBy(rows, of) }
	return fmt.Sprintf("faults=%d claims=%d doubled=%d lost=%d wrong_deletes=%d", len(rows),
		sum(func(r row) int { return r.claims }), sum(func(r row) int { return r.doubled }),
		sum(func(r row) int { return r.lost }), sum(func(r row) int { return r.wrong }))
}

// problems returns what is wrong, one problem on each line.
func problems(rows []row) string {
	return strings.Join(lo.FlatMap(rows, func(r row, _ int) []string { return r.problems }), "\n")
}
