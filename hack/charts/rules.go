// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The files for the rules of the operator's own role. With two clusters the operator has one identity in each, which gets
// only the rights that it needs there.
const (
	workloadRules = "workload.yaml"
	// Rights that can be limited to the namespace of the served Cluster, and rights that cannot.
	managementRules        = "management.yaml"
	managementClusterRules = "management-cluster.yaml"
)

// files maps the API groups in the operator's own role to the files of their rules.
var files = map[string]string{
	"":                                workloadRules,
	"karpenter.sh":                    workloadRules,
	"karpenter.cluster.x-k8s.io":      workloadRules,
	"cluster.x-k8s.io":                managementRules,
	"bootstrap.cluster.x-k8s.io":      managementRules,
	"infrastructure.cluster.x-k8s.io": managementRules,
	"controlplane.cluster.x-k8s.io":   managementRules,
	"apiextensions.k8s.io":            managementClusterRules,
}

// ownRole is the role that controller-gen writes.
const ownRole = "manager-role"

// otherRoles are the roles that are not generated, each with its file.
var otherRoles = map[string]string{
	"karpenter-core-role":  "karpenter-core.yaml",
	"leader-election-role": "leader-election.yaml",
	"admin-role":           "admin.yaml",
}

// ruleFiles returns the files with the rules of the roles in a folder.
func ruleFiles(dir string) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	rules := map[string][]rbacv1.PolicyRule{}
	for _, path := range paths {
		if err := addRules(path, rules); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	content := map[string]string{}
	for file, rules := range rules {
		text, err := yaml.Marshal(rules)
		if err != nil {
			return nil, err
		}
		content[file] = header(dir) + string(text)
	}
	return content, nil
}

// addRules adds the rules of the role in a file, if it has one.
func addRules(path string, to map[string][]rbacv1.PolicyRule) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.Unmarshal(text, role); err != nil {
		return err
	}
	if role.Kind != "ClusterRole" && role.Kind != "Role" {
		return nil
	}
	if role.Name == ownRole {
		return divide(role.Rules, to)
	}
	file, known := otherRoles[role.Name]
	if !known {
		return fmt.Errorf("the chart has no file for the %s %s: add one in hack/charts/rules.go", role.Kind, role.Name)
	}
	to[file] = append(to[file], role.Rules...)
	return nil
}

// divide adds rules to the files of their API groups.
func divide(rules []rbacv1.PolicyRule, to map[string][]rbacv1.PolicyRule) error {
	for _, rule := range rules {
		groups := map[string][]string{}
		for _, group := range rule.APIGroups {
			file, known := files[group]
			if !known {
				return fmt.Errorf("%s has a rule for the API group %q: add the group to a file in hack/charts/rules.go", ownRole, group)
			}
			groups[file] = append(groups[file], group)
		}
		for file, ofFile := range groups {
			part := rule
			part.APIGroups = ofFile
			to[file] = append(to[file], part)
		}
	}
	return nil
}
