// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/samber/lo"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Patches are the patches of one KarpenterMachineTemplate, ready to be applied.
type Patches []patch

type patch struct {
	target     v1alpha1.PatchTarget
	index      int
	enabledIf  *template.Template // nil: always
	operations []operation
}

// operation is one operation of a patch. Its value is fixed or rendered from a Go template.
type operation struct {
	op, path string
	value    json.RawMessage
	from     *template.Template
	where    string
}

// Compile checks patches and parses their Go templates. The error names each patch
// that can never be applied.
func Compile(patches []v1alpha1.Patch) (Patches, error) {
	compiled := make(Patches, 0, len(patches))
	var errs []error
	for i := range patches {
		p, err := compile(i, &patches[i])
		errs = append(errs, err)
		compiled = append(compiled, p)
	}
	return compiled, errors.Join(errs...)
}

func compile(index int, from *v1alpha1.Patch) (patch, error) {
	compiled := patch{target: from.Target, index: index}
	if from.EnabledIf != "" {
		parsed, err := parse(from.EnabledIf)
		if err != nil {
			return patch{}, fmt.Errorf("spec.patches[%d].enabledIf: %w", index, err)
		}
		compiled.enabledIf = parsed
	}
	for i := range from.JSONPatches {
		o, err := compileOperation(&from.JSONPatches[i])
		if err != nil {
			return patch{}, fmt.Errorf("spec.patches[%d].jsonPatches[%d]: %w", index, i, err)
		}
		o.where = fmt.Sprintf("spec.patches[%d].jsonPatches[%d] (%s %s)", index, i, o.op, o.path)
		compiled.operations = append(compiled.operations, o)
	}
	return compiled, nil
}

func compileOperation(from *v1alpha1.JSONPatch) (operation, error) {
	compiled := operation{op: from.Op, path: from.Path}
	switch from.Op {
	case "add", "replace", "remove":
	default:
		return operation{}, fmt.Errorf("op must be add, replace or remove, found %q", from.Op)
	}
	if !strings.HasPrefix(from.Path, "/spec/") {
		return operation{}, fmt.Errorf("path must be below /spec/, found %q", from.Path)
	}
	given := 0
	if from.Value != nil {
		given++
		compiled.value = from.Value.Raw
	}
	if from.ValueFrom != nil {
		given++
		parsed, err := parse(from.ValueFrom.Template)
		if err != nil {
			return operation{}, fmt.Errorf("valueFrom.template: %w", err)
		}
		compiled.from = parsed
	}
	if wanted := lo.Ternary(from.Op == "remove", 0, 1); given != wanted {
		return operation{}, fmt.Errorf("op %s needs %d of value and valueFrom, found %d", from.Op, wanted, given)
	}
	return compiled, nil
}

// Operations are the operations of patches on one target for one offering.
type Operations struct {
	patch jsonpatch.Patch
	where []string
	key   string
}

// Key returns a string that is equal for equal operations.
func (o Operations) Key() string { return o.key }

// Empty reports whether there are no operations.
func (o Operations) Empty() bool { return len(o.patch) == 0 }

// Render returns the operations of the patches on a target for one offering.
func (p Patches) Render(target v1alpha1.PatchTarget, variables Variables) (Operations, error) {
	values := variables.values()
	rendered := Operations{}
	var encoded []json.RawMessage
	for _, patch := range p {
		if patch.target != target {
			continue
		}
		enabled, err := patch.enabled(values)
		if err != nil {
			return Operations{}, err
		}
		if !enabled {
			continue
		}
		for _, operation := range patch.operations {
			raw, err := operation.encode(values)
			if err != nil {
				return Operations{}, fmt.Errorf("%s: %w", operation.where, err)
			}
			encoded = append(encoded, raw)
			rendered.where = append(rendered.where, operation.where)
		}
	}
	if len(encoded) == 0 {
		return rendered, nil
	}
	raw, err := json.Marshal(encoded)
	if err != nil {
		return Operations{}, fmt.Errorf("encoding patches: %w", err)
	}
	if rendered.patch, err = jsonpatch.DecodePatch(raw); err != nil {
		return Operations{}, fmt.Errorf("reading patches: %w", err)
	}
	rendered.key = string(raw)
	return rendered, nil
}

func (p *patch) enabled(values map[string]any) (bool, error) {
	if p.enabledIf == nil {
		return true, nil
	}
	text, err := render(p.enabledIf, values)
	if err != nil {
		return false, fmt.Errorf("spec.patches[%d].enabledIf: %w", p.index, err)
	}
	return strings.TrimSpace(text) == "true", nil
}

// encode returns the operation in the form of RFC 6902.
func (o *operation) encode(values map[string]any) (json.RawMessage, error) {
	value := o.value
	if o.from != nil {
		text, err := render(o.from, values)
		if err != nil {
			return nil, fmt.Errorf("valueFrom.template: %w", err)
		}
		if value, err = yaml.YAMLToJSON([]byte(text)); err != nil {
			return nil, fmt.Errorf("valueFrom.template renders to %q, which is not valid YAML: %w", text, err)
		}
		if string(value) == "null" {
			return nil, fmt.Errorf("valueFrom.template %q renders to nothing", o.from.Root.String())
		}
	}
	encoded := map[string]any{"op": o.op, "path": o.path}
	if o.op != "remove" {
		encoded["value"] = value
	}
	return json.Marshal(encoded)
}

// Apply returns a template's spec with the operations applied. The error names the first
// operation that fails. Operations can only change the spec.
func (o Operations) Apply(spec map[string]any) (map[string]any, error) {
	document, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return nil, fmt.Errorf("encoding the base template: %w", err)
	}
	patched, err := o.patch.ApplyWithOptions(document, options())
	if err != nil {
		return nil, o.explain(document, err)
	}
	result := struct {
		Spec map[string]any `json:"spec"`
	}{}
	// The API machinery's decoder keeps whole numbers whole.
	if err := utiljson.Unmarshal(patched, &result); err != nil || result.Spec == nil {
		return nil, fmt.Errorf("the spec of the patched template is not an object: %w", err)
	}
	return result.Spec, nil
}

// options returns the options for RFC 6902: an index must exist, and so must a removed value.
func options() *jsonpatch.ApplyOptions {
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false
	return options
}

// explain returns an error that names the operation that fails.
func (o Operations) explain(document []byte, err error) error {
	for i := range o.patch {
		if _, err := o.patch[:i+1].ApplyWithOptions(document, options()); err != nil {
			return fmt.Errorf("%s cannot be applied to the base template: %w", o.where[i], err)
		}
	}
	return err
}
