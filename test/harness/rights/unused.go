// SPDX-License-Identifier: Apache-2.0

package rights

import (
	_ "embed"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

//go:embed unused.yaml
var unused []byte

// Explanation is why the e2e tests do not use some rights of a role.
type Explanation struct {
	Role      string   `json:"role"`
	Group     string   `json:"group"`
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
	Reason    string   `json:"reason"`
}

// rights returns the rights that are explained.
func (e *Explanation) rights() []Right {
	return Of(e.Role, []rbacv1.PolicyRule{{APIGroups: []string{e.Group}, Resources: e.Resources, Verbs: e.Verbs}})
}

// Explanations returns the content of unused.yaml.
func Explanations() ([]Explanation, error) {
	var explanations []Explanation
	if err := yaml.UnmarshalStrict(unused, &explanations); err != nil {
		return nil, fmt.Errorf("unused.yaml: %w", err)
	}
	return explanations, nil
}

// Report is the comparison of granted rights with used ones.
type Report struct {
	// Lines has each right, and whether it is used or why not.
	Lines []string
	// Problems are rights that are not used and not explained, and explanations that do not apply.
	Problems []string
}

// Compare reports which of the granted rights were not used.
func (u *Usage) Compare(granted map[string][]rbacv1.PolicyRule, explanations []Explanation) Report {
	reasons := map[Right]string{}
	report := Report{}
	for i := range explanations {
		if explanations[i].Reason == "" {
			report.Problems = append(report.Problems, fmt.Sprintf("%v: the explanation has no reason", explanations[i]))
		}
		for _, right := range explanations[i].rights() {
			reasons[right] = explanations[i].Reason
		}
	}
	for _, role := range All {
		for _, right := range Of(role, granted[role]) {
			reason, explained := reasons[right]
			delete(reasons, right)
			switch {
			case u.Used[right] > 0 && explained:
				report.Problems = append(report.Problems, right.String()+": it is used, so remove it from unused.yaml")
			case u.Used[right] > 0:
				report.Lines = append(report.Lines, fmt.Sprintf("%s: used by %d stacks", right, u.Used[right]))
			case explained:
				report.Lines = append(report.Lines, right.String()+": not used: "+reason)
			default:
				report.Lines = append(report.Lines, right.String()+": NOT USED")
				report.Problems = append(report.Problems, right.String()+": it is not used, so remove it from the role, or explain it in unused.yaml")
			}
		}
	}
	for right := range reasons {
		report.Problems = append(report.Problems, right.String()+": it is not granted, so remove it from unused.yaml")
	}
	slices.Sort(report.Problems)
	return report
}
