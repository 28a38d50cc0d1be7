// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"
)

// wrong are statements that pages once had, and the tests that show the opposite.
var wrong = []struct{ pattern, because, test string }{
	{
		`metrics (\S+ ){0,5}(is|are|have|has|need|needs) (not|no|neither)[^.]*authenticat|unauthenticated metrics`,
		"clients of the metrics need a token and a right", "`test/e2e/diagnostics_test.go`: TestDiagnostics",
	},
	{
		`(does not|never|cannot) (pass|hand|give)s?( \S+){0,4} to the kubelet|capacity\.pods\S* (does not|never) reach`,
		"the operator passes capacity.pods to the kubelet", "`internal/generate`: TestArgumentsOfEachInstanceType",
	},
	{
		`repair policies[^.|]*nothing drifts`,
		"Nodes drift", "`internal/cloudprovider`: TestIsDrifted; `test/e2e`: TestDrift",
	},
}

func TestNoPageHasAStatementThatIsWrong(t *testing.T) {
	for _, statement := range wrong {
		for _, problem := range citations(repository, statement.test) {
			t.Error(problem)
		}
		pattern := regexp.MustCompile("(?i)" + statement.pattern)
		for page, text := range pages(t) {
			// A sentence can be on several lines.
			if found := pattern.FindString(strings.Join(strings.Fields(strings.ReplaceAll(text, "`", "")), " ")); found != "" {
				t.Errorf("%s: %q, but %s: see %s", page, found, statement.because, statement.test)
			}
		}
	}
}
