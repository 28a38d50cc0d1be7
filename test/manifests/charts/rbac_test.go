// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	single "github.com/karpenter-capi/karpenter-capi/test/harness/rights"
)

// The rights are the same as with kustomize, which are in config/rbac. With two clusters they are divided between them.
func TestRights(t *testing.T) {
	rules := kustomizeRules(t)
	workload, management, cluster := union(rules["workload-role"], rules["karpenter-core-role"]), rules["management-role"], rules["management-cluster-role"]
	metrics, election, admin := rules["metrics-role"], rules["leader-election-role"], rules["admin-role"]
	providers := func(right string) bool {
		return has(right, "bootstrap.cluster.x-k8s.io") || has(right, "infrastructure.cluster.x-k8s.io")
	}

	for name, tc := range map[string]struct {
		values Values
		want   map[string][]string // of the operator, by namespace
		admin  []string
	}{
		"one cluster": {
			want:  map[string][]string{"": union(workload, management, cluster, metrics), namespace: election},
			admin: admin,
		},
		"one cluster, a namespace": {
			values: Values{"settings": Values{"clusterNamespace": "clusters"}},
			want:   map[string][]string{"": union(workload, cluster, metrics), "clusters": management, namespace: election},
			admin:  admin,
		},
		"workload cluster": {
			values: Values{"placement": "WorkloadCluster", "managementCluster": Values{"existingSecret": "management"}},
			want:   map[string][]string{"": union(workload, metrics), namespace: election},
			admin:  admin,
		},
		"management cluster": {
			values: Values{"placement": "ManagementCluster", "settings": Values{"clusterName": "demo", "clusterNamespace": namespace}},
			want: map[string][]string{"": union(cluster, metrics), namespace: union(
				management, leaseOf(election, "karpenter-leader-election."+namespace+".demo"), rightsOf("", "events", "create", "patch"),
			)},
		},
		"identity": {
			values: Values{"placement": "Identity", "settings": Values{"clusterNamespace": "clusters"}},
			want:   map[string][]string{"": cluster, "clusters": management},
		},
		"inventories": {
			values: Values{"settings": Values{"clusterNamespace": "clusters"}, "rbac": Values{"inventoryKinds": []Values{
				{"apiGroup": "metal3.io", "resources": []string{"baremetalhosts"}},
			}}},
			want: map[string][]string{"": union(workload, cluster, metrics), "clusters": union(
				management, rightsOf("metal3.io", "baremetalhosts", "list", "watch"),
			), namespace: election},
			admin: admin,
		},
		"kinds in use": {
			values: Values{"placement": "Identity", "settings": Values{"clusterNamespace": "clusters"}, "rbac": Values{"infrastructureKinds": []Values{
				{"apiGroup": "infrastructure.cluster.x-k8s.io", "resources": []string{"awsmachinetemplates", "awsmachinepools"}},
				{"apiGroup": "infrastructure.cluster.x-k8s.io", "resources": []string{"awsfargateprofiles"}, "readOnly": true},
				{"apiGroup": "bootstrap.cluster.x-k8s.io", "resources": []string{"kubeadmconfigtemplates"}},
			}}},
			want: map[string][]string{"": cluster, "clusters": union(
				only(management, func(right string) bool { return !providers(right) }),
				rightsOf("infrastructure.cluster.x-k8s.io", "awsmachinetemplates", "create", "delete", "get", "list", "patch", "watch"),
				rightsOf("infrastructure.cluster.x-k8s.io", "awsmachinepools", "create", "delete", "get", "list", "patch", "watch"),
				rightsOf("infrastructure.cluster.x-k8s.io", "awsmachines", "get", "list", "watch"),
				rightsOf("infrastructure.cluster.x-k8s.io", "awsfargateprofiles", "get", "list", "watch"),
				rightsOf("bootstrap.cluster.x-k8s.io", "kubeadmconfigtemplates", "create", "delete", "get", "list", "patch", "watch"),
				rightsOf("bootstrap.cluster.x-k8s.io", "kubeadmconfigs", "get", "list", "watch"),
			)},
		},
		"Secrets with a label": {
			values: Values{"settings": Values{"clusterNamespace": "clusters", "allowedSecrets": []string{"workers", "label:for-templates"}}},
			want: map[string][]string{
				"": union(workload, cluster, metrics), namespace: election,
				"clusters": union(management, rightsOf("", "secrets", "list", "watch")),
			},
			admin: admin,
		},
		"with more rules": {
			values: Values{"additionalClusterRoleRules": []Values{{"apiGroups": []string{"example.com"}, "resources": []string{"things"}, "verbs": []string{"get"}}}},
			want: map[string][]string{
				"": union(workload, management, cluster, metrics, rightsOf("example.com", "things", "get")), namespace: election,
			},
			admin: admin,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := render(t, Operator, tc.values)
			account := the[corev1.ServiceAccount](t, rendered, "ServiceAccount")
			got := granted(t, rendered, rbacv1.Subject{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the operator's rights (-want +got):\n%s", diff)
			}
			var gotAdmin []string
			for _, role := range decode[rbacv1.ClusterRole](t, rendered, "ClusterRole") {
				if role.Labels["rbac.authorization.k8s.io/aggregate-to-admin"] == "true" {
					gotAdmin = rights(role.Rules)
				}
			}
			if diff := cmp.Diff(tc.admin, gotAdmin); diff != "" {
				t.Errorf("the administrators' rights (-want +got):\n%s", diff)
			}
		})
	}
}

// No right is for Secrets or for all verbs, because the operator reads no Secret from an API server.
func TestNoRightIsTooWide(t *testing.T) {
	for name, values := range Matrix() {
		t.Run(name, func(t *testing.T) {
			rendered := render(t, Operator, values)
			var all []rbacv1.PolicyRule
			for _, role := range decode[rbacv1.ClusterRole](t, rendered, "ClusterRole") {
				all = append(all, role.Rules...)
			}
			for _, role := range decode[rbacv1.Role](t, rendered, "Role") {
				all = append(all, role.Rules...)
			}
			if len(all) == 0 {
				t.Fatal("no role has rules")
			}
			for _, rule := range all {
				secrets := slices.Contains(rule.APIGroups, "") && (slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "*"))
				impersonates := slices.Contains(rule.Verbs, "impersonate") || slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "bind")
				if secrets || impersonates || slices.Contains(rule.Verbs, "*") || slices.Contains(rule.APIGroups, "*") {
					t.Errorf("the rule %v is too wide", rule)
				}
			}
		})
	}
}

// kustomizeRules returns the rights of each role in config/rbac.
func kustomizeRules(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(), "config", "rbac", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := Decode(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range documents {
			if kind := document.GetKind(); kind != "ClusterRole" && kind != "Role" {
				continue
			}
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(document.Object, role); err != nil {
				t.Fatal(err)
			}
			all[role.Name] = rights(role.Rules)
		}
	}
	return all
}

// granted returns the rights that roles and bindings give to a subject, by namespace; those without a namespace are
// cluster-wide.
func granted(t *testing.T, from objects, subject rbacv1.Subject) map[string][]string {
	t.Helper()
	got := map[string][]string{}
	grant := func(namespace string, subjects []rbacv1.Subject, ref rbacv1.RoleRef, rules []rbacv1.PolicyRule) {
		if rules == nil || !slices.Equal(subjects, []rbacv1.Subject{subject}) {
			t.Errorf("the binding to %s %s binds %v, and the role has the rules %v", ref.Kind, ref.Name, subjects, rules)
		}
		got[namespace] = union(got[namespace], rights(rules))
	}
	for _, binding := range decode[rbacv1.ClusterRoleBinding](t, from, "ClusterRoleBinding") {
		var rules []rbacv1.PolicyRule
		for _, role := range decode[rbacv1.ClusterRole](t, from, "ClusterRole") {
			if role.Name == binding.RoleRef.Name {
				rules = role.Rules
			}
		}
		grant("", binding.Subjects, binding.RoleRef, rules)
	}
	for _, binding := range decode[rbacv1.RoleBinding](t, from, "RoleBinding") {
		var rules []rbacv1.PolicyRule
		for _, role := range decode[rbacv1.Role](t, from, "Role") {
			if role.Name == binding.RoleRef.Name && role.Namespace == binding.Namespace {
				rules = role.Rules
			}
		}
		grant(binding.Namespace, binding.Subjects, binding.RoleRef, rules)
	}
	return got
}

// right is one verb on one resource.
func right(group, resource, name, verb string) string {
	return fmt.Sprintf("[%s] %s %s %s", group, resource, name, verb)
}

// rightsOf returns verbs on one resource.
func rightsOf(group, resource string, verbs ...string) []string {
	return rights([]rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}})
}

// has reports whether a right is for an API group.
func has(right, group string) bool {
	return strings.HasPrefix(right, "["+group+"] ")
}

// leaseOf returns the rights of leader election for another name of the lease.
func leaseOf(election []string, name string) []string {
	named := slices.Clone(election)
	for i := range named {
		named[i] = strings.ReplaceAll(named[i], "karpenter-leader-election", name)
	}
	return union(named)
}

// rights splits rules into single rights, so that it does not matter how they are combined.
func rights(rules []rbacv1.PolicyRule) []string {
	return union(lo.Map(single.Of("", rules), func(r single.Right, _ int) string { return right(r.Group, r.Resource, r.Name, r.Verb) }))
}

// union returns what is in any of the lists, in order.
func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// only returns the rights for which a condition holds.
func only(rights []string, holds func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(rights), func(right string) bool { return !holds(right) })
}
