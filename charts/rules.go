// SPDX-License-Identifier: Apache-2.0

// Package charts has the rules of the operator's roles, which the chart grants. The operator checks at its start whether it has
// these rights.
package charts

import (
	"embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

//go:embed karpenter-capi/files/rules/*.yaml
var rules embed.FS

// Rules returns the rules in a file of karpenter-capi/files/rules, such as workload.
func Rules(file string) ([]rbacv1.PolicyRule, error) {
	text, err := rules.ReadFile("karpenter-capi/files/rules/" + file + ".yaml")
	if err != nil {
		return nil, err
	}
	var read []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict(text, &read); err != nil {
		return nil, fmt.Errorf("rules %s: %w", file, err)
	}
	return read, nil
}
