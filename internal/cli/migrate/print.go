// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// Print returns the plan as YAML: the notes and steps as comments, and then the objects.
func (p *Plan) Print() ([]byte, error) {
	var out bytes.Buffer
	for _, note := range p.Notes {
		fmt.Fprintf(&out, "# %s:\n", note.Object)
		for _, line := range note.Lines {
			fmt.Fprintf(&out, "# - %s\n", view.OneLine(line))
		}
	}
	if len(p.Objects) == 0 {
		out.WriteString("#\n# Nothing can be adopted yet.\n")
		return out.Bytes(), nil
	}
	printSteps(&out, "Steps", p.Steps)
	printSteps(&out, "The way back", p.Back)
	for _, object := range p.Objects {
		content, err := Written(object)
		if err != nil {
			return nil, err
		}
		document, err := yaml.Marshal(content.Object)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(document)
	}
	return out.Bytes(), nil
}

func printSteps(out *bytes.Buffer, title string, steps []Step) {
	fmt.Fprintf(out, "#\n# %s:\n", title)
	for i, step := range steps {
		text := step.Text
		if text == "" {
			text = "Apply the objects below to the workload cluster, or repeat this command with --apply."
		}
		fmt.Fprintf(out, "# %d. %s\n", i+1, view.OneLine(text))
		for _, command := range step.Commands {
			fmt.Fprintf(out, "#      %s\n", command)
		}
	}
}

// Written returns an object with what a user writes, and without status.
func Written(object client.Object) (*unstructured.Unstructured, error) {
	content, err := view.Content(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", object.GetName(), err)
	}
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}
