// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// The operator asks for each right without which it does not work, and for no other: an installation can narrow the
// rest.
func TestNeeded(t *testing.T) {
	got := needed([]rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"watch", "patch"}},
		{APIGroups: []string{"infrastructure.cluster.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"get"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"x"}, Verbs: []string{"delete"}},
		{APIGroups: []string{"autoscaling.x-k8s.io", "autoscaling.k8s.io", "karpenter.sh"}, Resources: []string{"nodeclaims/status"}, Verbs: []string{"patch"}},
	}, "fleet")
	want := []right{
		{"", "nodes", "list", "fleet"}, {"", "nodes", "watch", "fleet"}, {"", "pods", "list", "fleet"}, {"", "pods", "watch", "fleet"},
		{"", "nodes", "patch", "fleet"}, {"karpenter.sh", "nodeclaims/status", "patch", "fleet"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(right{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	asked := authorizationv1.ResourceAttributes{Group: "karpenter.sh", Resource: "nodeclaims", Subresource: "status", Verb: "patch", Namespace: "fleet"}
	if diff := cmp.Diff(asked, *got[len(got)-1].attributes()); diff != "" {
		t.Errorf("the API server is asked for another right (-want +got):\n%s", diff)
	}
}
