// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// labelPrefix precedes a label among the allowed Secrets.
const labelPrefix = "label:"

// Rules are what the platform team allows templates to refer to. The zero value is the default.
type Rules struct {
	// Secrets are patterns of their names.
	Secrets []string
	// SecretLabel selects Secrets by their labels; nil if none are allowed by a label.
	SecretLabel labels.Selector
	// BaseTemplates are patterns of base templates; nil for all but those of other Clusters.
	BaseTemplates []BaseTemplate
	// Reserved are changes to the fields and labels that only base templates can set.
	Reserved Reserved
}

// BaseTemplate has a pattern of the kind of base templates, and one of their names.
type BaseTemplate struct{ Kind, Name string }

// Parse reads the options --allowed-secrets, --allowed-base-templates and --reserved-fields: entries that are separated by
// commas. An entry for Secrets is a name, in which * stands for any characters, or label:KEY[=VALUE]. An
// entry for base templates is KIND/NAME, and both can contain *. An entry for reserved fields is KIND.FIELD or
// label:KEY, after - if templates can set it.
func Parse(secrets, baseTemplates, reservedFields string) (Rules, error) {
	reserved, err := parseReserved(reservedFields)
	if err != nil {
		return Rules{}, err
	}
	rules := Rules{Reserved: reserved}
	for _, entry := range entriesOf(secrets) {
		if label, is := strings.CutPrefix(entry, labelPrefix); is {
			if rules.SecretLabel != nil {
				return Rules{}, fmt.Errorf("--allowed-secrets: expected at most one label, found a second one in %q", entry)
			}
			selector, err := parseLabel(label)
			if err != nil {
				return Rules{}, fmt.Errorf("--allowed-secrets: expected %sKEY[=VALUE], found %q: %w", labelPrefix, entry, err)
			}
			rules.SecretLabel = selector
			continue
		}
		if !isPattern(entry) {
			return Rules{}, fmt.Errorf("--allowed-secrets: expected the name of a Secret, in which * stands for any characters, or %sKEY[=VALUE], found %q", labelPrefix, entry)
		}
		rules.Secrets = append(rules.Secrets, entry)
	}
	for _, entry := range entriesOf(baseTemplates) {
		kind, name, _ := strings.Cut(entry, "/")
		if !isPattern(strings.ToLower(kind)) || !isPattern(name) {
			return Rules{}, fmt.Errorf("--allowed-base-templates: expected KIND/NAME, in which * stands for any characters, found %q", entry)
		}
		rules.BaseTemplates = append(rules.BaseTemplates, BaseTemplate{kind, name})
	}
	return rules, nil
}

// entriesOf returns the entries of an option.
func entriesOf(option string) []string {
	return lo.Compact(lo.Map(strings.Split(option, ","), func(entry string, _ int) string { return strings.TrimSpace(entry) }))
}

// parseLabel reads KEY or KEY=VALUE.
func parseLabel(text string) (labels.Selector, error) {
	key, value, _ := strings.Cut(text, "=")
	if !strings.Contains(text, "=") {
		return labels.Parse(key)
	}
	return labels.ValidatedSelectorFromSet(labels.Set{key: value})
}

// isPattern reports whether a text is part of the name of an object, in which * stands for any characters.
func isPattern(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-.*") == ""
}

// matches reports whether a name matches a pattern. Names and patterns have no character that is special
// to path.Match, except for *.
func matches(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return err == nil && matched
}

// secretNamed reports whether the rules allow a Secret by its name.
func (r Rules) secretNamed(name string) bool {
	return slices.ContainsFunc(r.Secrets, func(pattern string) bool { return matches(pattern, name) })
}

// baseNamed reports whether the rules allow a base template by its kind and name.
func (r Rules) baseNamed(kind schema.GroupKind, name string) bool {
	return slices.ContainsFunc(r.BaseTemplates, func(pattern BaseTemplate) bool {
		return matches(pattern.Kind, kind.Kind) && matches(pattern.Name, name)
	})
}

// basesText returns the allowed base templates as the option has them.
func (r Rules) basesText() string {
	return strings.Join(lo.Map(r.BaseTemplates, func(pattern BaseTemplate, _ int) string { return pattern.Kind + "/" + pattern.Name }), ", ")
}
