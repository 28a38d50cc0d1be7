// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
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
	}, "fleet", required)
	want := []Right{
		{"", "nodes", "list", "fleet"}, {"", "nodes", "watch", "fleet"}, {"", "pods", "list", "fleet"}, {"", "pods", "watch", "fleet"},
		{"", "nodes", "patch", "fleet"}, {"karpenter.sh", "nodeclaims/status", "patch", "fleet"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	asked := authorizationv1.ResourceAttributes{Group: "karpenter.sh", Resource: "nodeclaims", Subresource: "status", Verb: "patch", Namespace: "fleet"}
	if diff := cmp.Diff(asked, *got[len(got)-1].Attributes()); diff != "" {
		t.Errorf("the API server is asked for another right (-want +got):\n%s", diff)
	}
}

// The operator needs all verbs of a kind of base templates, only those that read of a kind of Machines' objects, and nothing of kinds
// that are not of a provider.
func TestOfKinds(t *testing.T) {
	const infrastructure = "infrastructure.cluster.x-k8s.io"
	got, err := OfKinds(Management, "fleet", []Kind{
		{Group: infrastructure, Resource: "awsmachines", ReadOnly: true},
		{Group: "controlplane.cluster.x-k8s.io", Resource: "kubeadmcontrolplanes"},
		{Group: infrastructure, Resource: "awsmachinetemplates"},
		{Group: "example.com", Resource: "others"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Right{
		{infrastructure, "awsmachines", "get", "fleet"}, {infrastructure, "awsmachines", "list", "fleet"}, {infrastructure, "awsmachines", "watch", "fleet"},
		{infrastructure, "awsmachinetemplates", "create", "fleet"}, {infrastructure, "awsmachinetemplates", "delete", "fleet"},
		{infrastructure, "awsmachinetemplates", "get", "fleet"}, {infrastructure, "awsmachinetemplates", "list", "fleet"},
		{infrastructure, "awsmachinetemplates", "patch", "fleet"}, {infrastructure, "awsmachinetemplates", "watch", "fleet"},
		{"controlplane.cluster.x-k8s.io", "kubeadmcontrolplanes", "list", "fleet"}, {"controlplane.cluster.x-k8s.io", "kubeadmcontrolplanes", "watch", "fleet"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The operator needs the rights to devices only if Karpenter plans Nodes for ResourceClaims.
func TestForDevices(t *testing.T) {
	got, err := ForDevices()
	if err != nil {
		t.Fatal(err)
	}
	want := []Right{
		{devices, "resourceslices", "list", ""}, {devices, "resourceslices", "watch", ""},
		{devices, "resourceclaims", "list", ""}, {devices, "resourceclaims", "watch", ""},
		{devices, "deviceclasses", "list", ""}, {devices, "deviceclasses", "watch", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	always, err := Needed(Workload, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range always {
		if right.Group == devices {
			t.Errorf("%v is needed always, want only if Karpenter plans with devices", right)
		}
	}
}

func TestMissing(t *testing.T) {
	a, b := Right{Resource: "a", Verb: "get"}, Right{Resource: "b", Verb: "get"}
	got, err := Missing(t.Context(), []Right{a, b}, func(_ context.Context, asked *authorizationv1.ResourceAttributes) (bool, error) {
		return asked.Resource == "a", nil
	})
	if diff := cmp.Diff([]Right{b}, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	failed := errors.New("no answer")
	if _, err := Missing(t.Context(), []Right{a, b}, func(context.Context, *authorizationv1.ResourceAttributes) (bool, error) { return false, failed }); !errors.Is(err, failed) {
		t.Errorf("got the error %v, want %v", err, failed)
	}
}

func TestUsers(t *testing.T) {
	for name, tc := range map[string]struct{ got, want User }{
		"a ServiceAccount": {ServiceAccount("karpenter", "operator"), User{
			Name:   "system:serviceaccount:karpenter:operator",
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:karpenter", "system:authenticated"},
		}},
		"a client certificate": {Authenticated("admin", []string{"system:masters"}), User{Name: "admin", Groups: []string{"system:masters", "system:authenticated"}}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What lacks is said for each namespace, with the rules that grant it.
func TestDescribe(t *testing.T) {
	got := Describe([]Right{
		{Group: "cluster.x-k8s.io", Resource: "machines", Verb: "list", Namespace: "fleet"}, {Group: "cluster.x-k8s.io", Resource: "machines", Verb: "watch", Namespace: "fleet"},
		{Resource: "nodes", Verb: "patch"},
	}, "user jane")
	want := []Lack{
		{`user jane has no right in the whole cluster to patch nodes (API group "")`, `install the roles of the chart karpenter-capi, or bind it to a ClusterRole with the rules [{apiGroups: [""], resources: [nodes], verbs: [patch]}]`},
		{`user jane has no right in namespace fleet to list,watch machines (API group "cluster.x-k8s.io")`, `install the roles of the chart karpenter-capi, or bind it to a Role with the rules [{apiGroups: ["cluster.x-k8s.io"], resources: [machines], verbs: [list, watch]}]`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
