// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
)

// The roles in config/rbac, by the cluster in which the operator needs them.
const (
	Workload          = "workload-role"
	Core              = "karpenter-core-role"
	Management        = "management-role"
	ManagementCluster = "management-cluster-role"
	Metrics           = "metrics-role"
	LeaderElection    = "leader-election-role"
)

// All are the roles of an operator that has everything in one cluster.
var All = []string{Workload, Core, Management, ManagementCluster, Metrics, LeaderElection}

// Read returns the rules of the roles in the folder config/rbac of the repository.
func Read(root string) (map[string][]rbacv1.PolicyRule, error) {
	found, err := ReadDir(filepath.Join(root, "config", "rbac"))
	if err != nil {
		return nil, err
	}
	for _, role := range All {
		if len(found[role]) == 0 {
			return nil, fmt.Errorf("config/rbac has no rules for the role %s", role)
		}
	}
	return found, nil
}

// ReadDir returns the rules of the roles in the files of a folder, by their names.
func ReadDir(dir string) (map[string][]rbacv1.PolicyRule, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	found := map[string][]rbacv1.PolicyRule{}
	for _, file := range files {
		if err := readFile(file, found); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return found, nil
}

// readFile adds the rules of the roles in a file.
func readFile(file string, to map[string][]rbacv1.PolicyRule) error {
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // It is only read.
	decoder := utilyaml.NewYAMLOrJSONDecoder(content, 4096)
	for {
		role := &rbacv1.ClusterRole{}
		if err := decoder.Decode(role); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if role.Kind == "ClusterRole" || role.Kind == "Role" {
			to[role.Name] = role.Rules
		}
	}
}

// Right is one verb on one resource, with its subresource. Name is empty if the right is not limited to one object.
type Right struct {
	Role, Group, Resource, Name, Verb string
}

// String returns the right as it is listed.
func (r Right) String() string {
	resource := strings.TrimSuffix(r.Resource+"."+r.Group, ".")
	if r.Name != "" {
		resource += " " + r.Name
	}
	return fmt.Sprintf("%s: %s %s", r.Role, r.Verb, resource)
}

func compare(a, b Right) int {
	return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Verb, b.Verb))
}

// Of splits the rules of a role into rights, sorted.
func Of(role string, rules []rbacv1.PolicyRule) []Right {
	var rights []Right
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						rights = append(rights, Right{Role: role, Group: group, Resource: resource, Name: name, Verb: verb})
					}
				}
			}
		}
	}
	slices.SortFunc(rights, compare)
	return slices.Compact(rights)
}

// covers reports whether the right was needed for a request.
func (r Right) covers(entry *audit.Entry) bool {
	ref := &entry.ObjectRef
	resource := ref.Resource
	if ref.Subresource != "" {
		resource += "/" + ref.Subresource
	}
	// An informer lists only if the API server cannot stream a list, or after an interrupted watch.
	verb := r.Verb == entry.Verb || r.Verb == "list" && entry.Verb == "watch"
	return verb && r.Group == ref.APIGroup && (r.Resource == resource || r.Resource == "*") && (r.Name == "" || r.Name == ref.Name)
}

// same returns what requests have in common that need the same right in the same namespace.
func same(entry *audit.Entry) string {
	ref := &entry.ObjectRef
	return strings.Join([]string{entry.What(), ref.APIGroup, ref.Namespace, ref.Name}, " ")
}

// Usage collects which rights were used, and the requests that were denied.
type Usage struct {
	// Used is in how many stacks a request needed a right. A right that only one stack needs can depend on timing.
	Used map[Right]int
	// Denied are the requests beyond the rights.
	Denied []audit.Entry
}

// Add adds the requests for a user in a cluster in which it has some of the roles. After a restart, an API server
// denies requests until it has read its roles, so a request that was also allowed is not counted as denied.
func (u *Usage) Add(user string, granted map[string][]rbacv1.PolicyRule, roles []string, entries []audit.Entry) {
	if u.Used == nil {
		u.Used = map[Right]int{}
	}
	var open []Right
	for _, role := range roles {
		open = append(open, Of(role, granted[role])...)
	}
	allowed := map[string]bool{}
	for i := range entries {
		if entry := &entries[i]; entry.For(user) && !entry.Denied() {
			allowed[same(entry)] = true
		}
	}
	seen := map[string]bool{}
	for i := range entries {
		entry := &entries[i]
		if !entry.For(user) {
			continue
		}
		if entry.Denied() {
			// A watch has one more entry, in which it begins.
			if entry.Stage != "ResponseStarted" && !allowed[same(entry)] {
				u.Denied = append(u.Denied, *entry)
			}
			continue
		}
		// Most requests are the same as others.
		key := entry.What() + " " + entry.ObjectRef.APIGroup + " " + entry.ObjectRef.Name
		if seen[key] {
			continue
		}
		seen[key] = true
		open = slices.DeleteFunc(open, func(right Right) bool {
			used := right.covers(entry)
			if used {
				u.Used[right]++
			}
			return used
		})
	}
}
