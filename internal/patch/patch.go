// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/samber/lo"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Patches are the patches of one KarpenterMachineTemplate, ready to be applied. Only one goroutine can use them at a time.
type Patches struct {
	patches []patch
	budget  *budget
}

type patch struct {
	target     v1alpha1.PatchTarget
	index      int
	enabledIf  *goTemplate // nil: always
	operations []operation
}

// operation is one operation of a patch. Its value is fixed or rendered from a Go template.
type operation struct {
	op, path string
	value    json.RawMessage
	from     *goTemplate
	where    string
}

// Compile checks patches and parses their Go templates. The error names each patch
// that can never be applied.
func Compile(patches []v1alpha1.Patch) (Patches, error) {
	if err := checkTotals(patches); err != nil {
		return Patches{}, err
	}
	templates := newTemplates()
	compiled := Patches{budget: templates.budget}
	var errs []error
	for i := range patches {
		p, err := templates.compile(i, &patches[i])
		errs = append(errs, err)
		compiled.patches = append(compiled.patches, p)
	}
	return compiled, errors.Join(errs...)
}

func (t *templates) compile(index int, from *v1alpha1.Patch) (patch, error) {
	compiled := patch{target: from.Target, index: index}
	if from.EnabledIf != "" {
		parsed, err := t.parse(from.EnabledIf)
		if err != nil {
			return patch{}, fmt.Errorf("spec.patches[%d].enabledIf: %w", index, err)
		}
		compiled.enabledIf = parsed
	}
	for i := range from.JSONPatches {
		o, err := t.compileOperation(&from.JSONPatches[i])
		if err != nil {
			return patch{}, fmt.Errorf("spec.patches[%d].jsonPatches[%d]: %w", index, i, err)
		}
		o.where = fmt.Sprintf("spec.patches[%d].jsonPatches[%d] (%s %s)", index, i, o.op, o.path)
		compiled.operations = append(compiled.operations, o)
	}
	return compiled, nil
}

func (t *templates) compileOperation(from *v1alpha1.JSONPatch) (operation, error) {
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
		parsed, err := t.parse(from.ValueFrom.Template)
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
	var values map[string]any
	rendered := Operations{}
	var encoded []json.RawMessage
	p.budget.reset()
	for _, patch := range p.patches {
		if patch.target != target {
			continue
		}
		if values == nil { // most templates have patches of one target only
			values = variables.values()
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
	text, err := p.enabledIf.render(values)
	if err != nil {
		return false, fmt.Errorf("spec.patches[%d].enabledIf: %w", p.index, err)
	}
	return strings.TrimSpace(text) == "true", nil
}

// encode returns the operation in the form of RFC 6902.
func (o *operation) encode(values map[string]any) (json.RawMessage, error) {
	value := o.value
	if o.from != nil {
		text, err := o.from.render(values)
		if err != nil {
			return nil, fmt.Errorf("valueFrom.template: %w", err)
		}
		if value, err = toJSON(text); err != nil {
			return nil, fmt.Errorf("valueFrom.template renders to %s, which %w", excerpt(text), err)
		}
		if string(value) == "null" {
			return nil, fmt.Errorf("valueFrom.template %s renders to nothing", excerpt(o.from.source))
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

// explain returns an error that names the operation that fails. All operations before it can be applied, so it takes few
// attempts to find it among many.
func (o Operations) explain(document []byte, err error) error {
	first := sort.Search(len(o.patch), func(i int) bool {
		_, err := o.patch[:i+1].ApplyWithOptions(document, options())
		return err != nil
	})
	if first == len(o.patch) {
		return err
	}
	_, err = o.patch[:first+1].ApplyWithOptions(document, options())
	return fmt.Errorf("%s cannot be applied to the base template: %w", o.where[first], err)
}
