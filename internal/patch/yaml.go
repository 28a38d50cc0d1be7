// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// maxYAMLDepth is how deep lists and maps of a rendered value can be nested.
const maxYAMLDepth = 100

// toJSON returns YAML as JSON. It looks at the nodes first, because aliases can repeat each other: a few hundred bytes can
// stand for billions of values.
func toJSON(text string) (json.RawMessage, error) {
	document := yamlv3.Node{}
	if err := yamlv3.Unmarshal([]byte(text), &document); err != nil {
		return nil, fmt.Errorf("is not valid YAML: %w", err)
	}
	if err := checkYAML(&document, 0); err != nil {
		return nil, err
	}
	value, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("is not valid YAML: %w", err)
	}
	return value, nil
}

func checkYAML(node *yamlv3.Node, depth int) error {
	switch {
	case node.Kind == yamlv3.AliasNode:
		return fmt.Errorf("has the alias *%s in line %d: anchors and aliases are not allowed in patches", node.Value, node.Line)
	case node.Anchor != "":
		return fmt.Errorf("has the anchor &%s in line %d: anchors and aliases are not allowed in patches", node.Anchor, node.Line)
	case depth > maxYAMLDepth:
		return fmt.Errorf("is nested more than %d deep in line %d", maxYAMLDepth, node.Line)
	}
	for _, child := range node.Content {
		if err := checkYAML(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}
