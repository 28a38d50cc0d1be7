// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
	kubeyaml "sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// writeYAML returns a catalog as people write it: fields in the order of the API, and capacities
// and offerings on one line each.
func writeYAML(c *v1alpha1.InstanceTypeCatalog) ([]byte, error) {
	content, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var document yaml.Node // JSON is YAML
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	setStyle(&document, 0)
	// apiVersion comes before kind.
	if top := document.Content[0].Content; top[0].Value == "kind" {
		top[0], top[1], top[2], top[3] = top[2], top[3], top[0], top[1]
	}
	var buffer bytes.Buffer
	encoder := yaml.NewEncoder(&buffer)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return buffer.Bytes(), encoder.Close()
}

// setStyle sets the style of a node and of all below: in blocks, except for the fields that are
// short.
func setStyle(node *yaml.Node, style yaml.Style) {
	node.Style = style
	if node.Kind == yaml.ScalarNode && node.Tag == "!!str" && !isPlain(node.Value) {
		node.Style = yaml.DoubleQuotedStyle
	}
	for i, child := range node.Content {
		below := style
		if node.Kind == yaml.MappingNode && i%2 == 1 {
			switch node.Content[i-1].Value {
			case "capacity", "pricing":
				below = yaml.FlowStyle
			}
		}
		if node.Kind == yaml.SequenceNode && isOffering(child) {
			below = yaml.FlowStyle
		}
		setStyle(child, below)
	}
}

// isPlain reports whether a string needs no quotes. kubectl reads n as a boolean, and 8 as a number.
func isPlain(text string) bool {
	var value any
	err := kubeyaml.Unmarshal([]byte(text), &value)
	return err == nil && value == text
}

// isOffering reports whether a node is an offering, which has a capacity type.
func isOffering(node *yaml.Node) bool {
	for _, field := range node.Content {
		if field.Value == "capacityType" {
			return true
		}
	}
	return false
}
