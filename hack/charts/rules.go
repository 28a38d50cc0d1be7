// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// The files that the rules of the operator's own role are divided among. With two clusters the operator has an identity
// in each, which gets what it needs there and no more.
const (
	workloadRules = "workload.yaml"
	// Rights that can be limited to the namespace of the served Cluster, and those that cannot.
	managementRules        = "management.yaml"
	managementClusterRules = "management-cluster.yaml"
)

// files says where the rules of each API group go that the operator's own role names.
var files = map[string]string{
	"":                                workloadRules,
	"karpenter.sh":                    workloadRules,
	"karpenter.cluster.x-k8s.io":      workloadRules,
	"cluster.x-k8s.io":                managementRules,
	"bootstrap.cluster.x-k8s.io":      managementRules,
	"infrastructure.cluster.x-k8s.io": managementRules,
	"apiextensions.k8s.io":            managementClusterRules,
}

// ownRole is the role that controller-gen writes.
const ownRole = "manager-role"

// otherRoles are those that are written by hand, each with its file.
var otherRoles = map[string]string{
	"karpenter-core-role":  "karpenter-core.yaml",
	"leader-election-role": "leader-election.yaml",
	"admin-role":           "admin.yaml",
}

// ruleFiles returns, from the objects of config/rbac, the files with the rules of their roles.
func ruleFiles(objects []byte) (map[string]string, error) {
	rules := map[string][]rbacv1.PolicyRule{}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(objects), 4096)
	for {
		role := &rbacv1.ClusterRole{}
		if err := decoder.Decode(role); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if role.Kind != "ClusterRole" && role.Kind != "Role" {
			continue
		}
		if role.Name == ownRole {
			if err := divide(role.Rules, rules); err != nil {
				return nil, err
			}
		} else if file, known := otherRoles[role.Name]; known {
			rules[file] = role.Rules
		} else {
			return nil, fmt.Errorf("config/rbac has a %s %s, which the chart has no place for: see hack/charts/rules.go", role.Kind, role.Name)
		}
	}
	content := map[string]string{}
	for file, rules := range rules {
		text, err := yaml.Marshal(rules)
		if err != nil {
			return nil, err
		}
		content[file] = header("config/rbac") + string(text)
	}
	return content, nil
}

// divide adds rules to the files of their API groups.
func divide(rules []rbacv1.PolicyRule, to map[string][]rbacv1.PolicyRule) error {
	for _, rule := range rules {
		groups := map[string][]string{}
		for _, group := range rule.APIGroups {
			file, known := files[group]
			if !known {
				return fmt.Errorf("%s has a rule for the API group %q: say in hack/charts/rules.go in which cluster that is", ownRole, group)
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
