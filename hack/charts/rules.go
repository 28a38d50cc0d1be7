// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/test/harness/rights"
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
	found, err := rights.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	content := map[string]string{}
	for role, rules := range found {
		file, known := roles[role]
		if !known {
			return nil, fmt.Errorf("the chart has no file for the role %s in %s: add one in hack/charts/rules.go, or name a known role in the marker", role, dir)
		}
		text, err := yaml.Marshal(rules)
		if err != nil {
			return nil, err
		}
		content[file] = header(dir) + string(text)
	}
	return content, nil
}
