// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// roles are the roles in config/rbac, each with the file of its rules. With two clusters the operator has one identity in each,
// which gets only the rights that it needs there. The markers in the code name the role of each rule.
var roles = map[string]string{
	"workload-role": "workload.yaml",
	// Rights that can be limited to the namespace of the served Cluster, and rights that cannot.
	"management-role":         "management.yaml",
	"management-cluster-role": "management-cluster.yaml",
	// Rights in the cluster in which the operator runs.
	"metrics-role":         "metrics.yaml",
	"leader-election-role": "leader-election.yaml",
	// Roles that are not generated.
	"karpenter-core-role": "karpenter-core.yaml",
	"metrics-reader-role": "metrics-reader.yaml",
	"admin-role":          "admin.yaml",
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

// addRules adds the rules of the roles in a file, if it has any.
func addRules(path string, to map[string][]rbacv1.PolicyRule) error {
	text, err := os.Open(path)
	if err != nil {
		return err
	}
	defer text.Close() //nolint:errcheck // It is only read.
	decoder := utilyaml.NewYAMLOrJSONDecoder(text, 4096)
	for {
		role := &rbacv1.ClusterRole{}
		if err := decoder.Decode(role); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if role.Kind != "ClusterRole" && role.Kind != "Role" {
			continue
		}
		file, known := roles[role.Name]
		if !known {
			return fmt.Errorf("the chart has no file for the %s %s: add one in hack/charts/rules.go, or name a known role in the marker", role.Kind, role.Name)
		}
		to[file] = append(to[file], role.Rules...)
	}
}
