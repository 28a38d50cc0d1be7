// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// request returns an entry of the audit log for the user operator.
func request(verb, group, resource, subresource, name string) audit.Entry {
	entry := audit.Entry{Verb: verb}
	entry.ImpersonatedUser.Username = "operator"
	entry.ObjectRef.APIGroup, entry.ObjectRef.Resource, entry.ObjectRef.Subresource, entry.ObjectRef.Name = group, resource, subresource, name
	return entry
}

// only returns a role with one rule.
func only(rule rbacv1.PolicyRule) map[string][]rbacv1.PolicyRule {
	return map[string][]rbacv1.PolicyRule{Workload: {rule}}
}

func TestUsage(t *testing.T) {
	other := request("get", "g", "things", "", "")
	other.ImpersonatedUser.Username = "other"
	denied := request("get", "g", "things", "", "")
	denied.Annotations = map[string]string{"authorization.k8s.io/decision": "forbid"}
	for name, tc := range map[string]struct {
		rule    rbacv1.PolicyRule
		request audit.Entry
		want    bool
	}{
		"the same":            {rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"things"}, Verbs: []string{"get"}}, request("get", "g", "things", "", "a"), true},
		"another verb":        {rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"things"}, Verbs: []string{"get"}}, request("list", "g", "things", "", ""), false},
		"another group":       {rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"things"}, Verbs: []string{"get"}}, request("get", "", "things", "", "a"), false},
		"another user":        {rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"things"}, Verbs: []string{"get"}}, other, false},
		"a denied request":    {rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"things"}, Verbs: []string{"get"}}, denied, false},
		"a subresource":       {rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"things/status"}, Verbs: []string{"patch"}}, request("patch", "g", "things", "status", "a"), true},
		"not the subresource": {rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"things"}, Verbs: []string{"patch"}}, request("patch", "g", "things", "status", "a"), false},
		"any resource":        {rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"*"}, Verbs: []string{"get"}}, request("get", "g", "things", "", "a"), true},
		"its name":            {rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"things"}, ResourceNames: []string{"a"}, Verbs: []string{"get"}}, request("get", "g", "things", "", "a"), true},
		"another name":        {rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"things"}, ResourceNames: []string{"a"}, Verbs: []string{"get"}}, request("get", "g", "things", "", "b"), false},
		"a streamed list":     {rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"things"}, Verbs: []string{"list"}}, request("watch", "g", "things", "", ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			usage := &Usage{}
			usage.Add("operator", only(tc.rule), []string{Workload}, []audit.Entry{tc.request, tc.request})
			right := Of(Workload, []rbacv1.PolicyRule{tc.rule})[0]
			if used := usage.Used[right]; (used == 1) != tc.want {
				t.Errorf("%s is used by %d stacks, want it used by one: %t", right, used, tc.want)
			}
			if wantDenied := name == "a denied request"; (len(usage.Denied) == 2) != wantDenied {
				t.Errorf("denied: %v", usage.Denied)
			}
		})
	}
}

// An API server that has just started denies what it allows before and after.
func TestDeniedAfterRestart(t *testing.T) {
	allowed, denied := request("watch", "g", "things", "", ""), request("watch", "g", "things", "", "")
	denied.Annotations = map[string]string{"authorization.k8s.io/decision": "forbid"}
	elsewhere := denied
	elsewhere.ObjectRef.Namespace = "other"
	usage := &Usage{}
	usage.Add("operator", nil, nil, []audit.Entry{denied, allowed, denied, elsewhere})
	if len(usage.Denied) != 1 || usage.Denied[0].ObjectRef.Namespace != "other" {
		t.Errorf("denied: %v, want only the request in the other namespace", usage.Denied)
	}
}

func TestCompare(t *testing.T) {
	granted := only(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get"}})
	explanation := func(resource, reason string) []Explanation {
		return []Explanation{{Role: Workload, Resources: []string{resource}, Verbs: []string{"get"}, Reason: reason}}
	}
	for name, tc := range map[string]struct {
		explained []Explanation
		used      []audit.Entry
		want      []string
	}{
		"all used":         {used: []audit.Entry{request("get", "", "pods", "", "a"), request("get", "", "nodes", "", "a")}},
		"one explained":    {explained: explanation("nodes", "because"), used: []audit.Entry{request("get", "", "pods", "", "a")}},
		"one unused":       {used: []audit.Entry{request("get", "", "pods", "", "a")}, want: []string{"workload-role: get nodes: it is not used, so remove it from the role, or explain it in unused.yaml"}},
		"explained, used":  {explained: explanation("pods", "because"), used: []audit.Entry{request("get", "", "pods", "", "a"), request("get", "", "nodes", "", "a")}, want: []string{"workload-role: get pods: it is used, so remove it from unused.yaml"}},
		"not granted":      {explained: explanation("things", "because"), used: []audit.Entry{request("get", "", "pods", "", "a"), request("get", "", "nodes", "", "a")}, want: []string{"workload-role: get things: it is not granted, so remove it from unused.yaml"}},
		"without a reason": {explained: explanation("nodes", ""), used: []audit.Entry{request("get", "", "pods", "", "a")}, want: []string{"{workload-role  [nodes] [get] }: the explanation has no reason"}},
	} {
		t.Run(name, func(t *testing.T) {
			usage := &Usage{}
			usage.Add("operator", granted, []string{Workload}, tc.used)
			if diff := cmp.Diff(tc.want, usage.Compare(granted, tc.explained).Problems); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Each explained right is one that the operator has.
func TestExplanations(t *testing.T) {
	granted, err := Read(charts.Root())
	if err != nil {
		t.Fatal(err)
	}
	explanations, err := Explanations()
	if err != nil {
		t.Fatal(err)
	}
	all := map[Right]bool{}
	for _, role := range All {
		for _, right := range Of(role, granted[role]) {
			all[right] = true
		}
	}
	for i := range explanations {
		if explanations[i].Reason == "" {
			t.Errorf("%v: it has no reason", explanations[i])
		}
		for _, right := range explanations[i].rights() {
			if !all[right] {
				t.Errorf("%s: the operator does not have this right", right)
			}
		}
	}
}
