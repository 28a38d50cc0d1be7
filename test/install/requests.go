// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// auditLogs returns the names of the audit logs.
func auditLogs(s *stack.Stack) []string {
	if s.Separate() {
		return []string{"audit.log", stack.ManagementPrefix + "audit.log"}
	}
	return []string{"audit.log"}
}

// CheckDenied checks that no request of the operator was denied in any cluster. In the management placement it has another
// user in each.
func CheckDenied(t *testing.T, s *stack.Stack) {
	t.Helper()
	g := gomega.NewWithT(t)
	for _, name := range auditLogs(s) {
		entries, _, err := audit.Log{Path: filepath.Join(s.LogDir(), name)}.Since(0)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		asked := lo.Filter(entries, func(e audit.Entry, _ int) bool { return e.By(build.Name) })
		g.Expect(asked).NotTo(gomega.BeEmpty(), name)
		denied := lo.Filter(asked, func(e audit.Entry, _ int) bool {
			return e.ResponseStatus.Code == http.StatusUnauthorized || e.ResponseStatus.Code == http.StatusForbidden
		})
		g.Expect(lo.Map(denied, func(e audit.Entry, _ int) string { return e.String() })).To(gomega.BeEmpty(), "%s: requests that were denied", name)
	}
}

// CheckRequests checks that all requests of the operator came from its ServiceAccount, and that none was denied.
func CheckRequests(t *testing.T, s *stack.Stack, account string) {
	t.Helper()
	g := gomega.NewWithT(t)
	for _, name := range auditLogs(s) {
		entries, _, err := audit.Log{Path: filepath.Join(s.LogDir(), name)}.Since(0)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		asked := lo.Filter(entries, func(e audit.Entry, _ int) bool { return e.By(build.Name) })
		denied := lo.Filter(asked, func(e audit.Entry, _ int) bool {
			return e.ResponseStatus.Code == http.StatusUnauthorized || e.ResponseStatus.Code == http.StatusForbidden
		})
		g.Expect(lo.Map(denied, func(e audit.Entry, _ int) string { return e.String() })).To(gomega.BeEmpty(), "%s: requests that were denied", name)
		users := lo.CountValuesBy(asked, func(e audit.Entry) string { return e.User.Username })
		g.Expect(users).To(gomega.And(gomega.HaveLen(1), gomega.HaveKey("system:serviceaccount:"+Namespace+":"+account)), "%s: users of the operator's requests", name)
		writes := audit.WritesBy(build.Name, asked)
		g.Expect(writes).NotTo(gomega.BeEmpty(), "%s has no write of the operator: nothing was tested", name)
		t.Logf("%s: %d requests of the operator, none denied; writes: %v", name, len(asked), audit.Count(writes))
	}
}
