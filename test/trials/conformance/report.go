// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

// results are what became of the specs.
type results struct {
	passed int
	// failed and skipped are the specs with the reason, one in each line.
	failed, skipped []string
}

func (r *results) add(other results) {
	r.passed += other.passed
	r.failed = append(r.failed, other.failed...)
	r.skipped = append(r.skipped, other.skipped...)
}

// String is the last line of the output.
func (r results) String() string {
	return fmt.Sprintf("passed=%d failed=%d skipped=%d", r.passed, len(r.failed), len(r.skipped))
}

// lines lists what did not pass.
func (r results) lines() string {
	var text strings.Builder
	write := func(title string, specs []string) {
		for _, spec := range slices.Sorted(slices.Values(specs)) {
			fmt.Fprintf(&text, "%s: %s\n", title, spec)
		}
	}
	write("skipped", r.skipped)
	write("FAILED", r.failed)
	return text.String()
}

// readReport reads Ginkgo's report of a shard. Specs of other shards are no part of the results.
func readReport(file string, of shard, full bool) (results, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return results{}, err
	}
	var reports []types.Report
	if err := json.Unmarshal(data, &reports); err != nil {
		return results{}, fmt.Errorf("reading %s: %w", file, err)
	}
	var r results
	for _, report := range reports {
		for _, failure := range report.SpecialSuiteFailureReasons {
			r.failed = append(r.failed, fmt.Sprintf("%s: %s", report.SuiteDescription, failure))
		}
		for i := range report.SpecReports {
			r.note(report.SuiteDescription, &report.SpecReports[i], of, full)
		}
	}
	return r, nil
}

// note adds one spec, or a node such as BeforeSuite if it failed.
func (r *results) note(suite string, spec *types.SpecReport, of shard, full bool) {
	name := suite + " " + spec.FullText()
	isSpec := spec.LeafNodeType == types.NodeTypeIt
	switch {
	case spec.State.Is(types.SpecStateFailureStates):
		message, _, _ := strings.Cut(spec.Failure.Message, "\n")
		r.failed = append(r.failed, fmt.Sprintf("%s (%s): %s", name, spec.RunTime.Round(time.Second), message))
	case isSpec && !slices.ContainsFunc(shards, func(s shard) bool { return s.suite == of.suite && s.focus.MatchString(name) }):
		r.failed = append(r.failed, name+": no shard runs it")
	case !isSpec || !of.focus.MatchString(name):
	case spec.State.Is(types.SpecStatePassed):
		r.passed++
	default:
		r.skipped = append(r.skipped, name+": "+reasonOf(name, spec, full))
	}
}

// reasonOf returns why a spec was skipped: by this project, or by itself.
func reasonOf(name string, spec *types.SpecReport, full bool) string {
	for _, s := range skipsOf(full) {
		if s.specs.MatchString(name) {
			return s.reason
		}
	}
	return strings.TrimSpace(spec.Failure.Message)
}

// skipsOf are the specs that do not run.
func skipsOf(full bool) []skip {
	return slices.DeleteFunc(slices.Clone(skips), func(s skip) bool { return full && s.long })
}
