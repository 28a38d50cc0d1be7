// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
)

// follow checks the history of a control plane, from its first write until the suite ends.
func (e *environment) follow(ctx context.Context) {
	GinkgoHelper()
	log, err := os.Create(filepath.Join(e.logs, "history.log"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(log.Close)
	e.history = history.NewRecorder(history.Rules{Failures: []string{noCapacity.Reason}}, log)
	endpoint := e.control.ControlPlane.Etcd.URL.String()
	e.running.Go(func() {
		defer GinkgoRecover()
		Expect(history.Follow(ctx, endpoint, e.history.Observe)).To(Succeed())
	})
}

// breaks declares that a spec violates rules of the history on purpose, with the claims and
// Machines of the fixture, like a user who deletes a Machine or edits a link.
func (f *fixture) breaks(rules ...history.Rule) *fixture {
	for _, rule := range rules {
		declared = append(declared, declaration{rule: rule, name: f.name})
	}
	return f
}

// declaration allows the objects whose names begin with that of a fixture to violate a rule.
type declaration struct {
	rule history.Rule
	name string
}

var declared []declaration

// allows reports whether a violation was declared.
func (d declaration) allows(violation history.Violation) bool {
	return violation.Rule == d.rule && lo.SomeBy([]string{"NodeClaim ", "Machine ", served.Namespace + "/"}, func(before string) bool {
		return strings.Contains(violation.Text, before+d.name+"-")
	})
}

// undeclared returns the violations that no spec has declared.
func undeclared(violations []history.Violation) []history.Violation {
	return lo.Reject(violations, func(violation history.Violation, _ int) bool {
		return lo.SomeBy(declared, func(d declaration) bool { return d.allows(violation) })
	})
}

// expectHistory expects, when nothing is left, that no rule was violated except by specs that
// declare it.
func (e *environment) expectHistory(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func() []history.Violation { return undeclared(e.history.End()) }).Should(BeEmpty(), "the end of the history")
	violations, err := e.history.Violations()
	Expect(err).NotTo(HaveOccurred())
	Expect(undeclared(violations)).To(BeEmpty(), "see history.log in %s", e.logs)
	for _, loss := range undeclared(e.history.Losses()) {
		Expect(e.requests.since(0, deletes(loss.Machine))).To(BeEmpty(), "requests of the operator; see history.log in %s: %s", e.logs, loss)
		AddReportEntry("a known race of Cluster API", loss.String())
	}
	AddReportEntry("history", fmt.Sprintf("%d claims", e.history.Claims()), ReportEntryVisibilityFailureOrVerbose)
}

// deletes matches the requests that deleted a Machine.
func deletes(machine string) func(request) bool {
	return func(r request) bool {
		return r.method == http.MethodDelete && r.accepted() && strings.HasSuffix(r.path, "/machines/"+machine)
	}
}
