// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// A client that reads an object and writes it back changes nothing, also if the object has empty maps, empty lists
// and zeros. The objects are random, and as the schema accepts them. Rules of the objects around a field do not count.
func TestRoundTrips(t *testing.T) {
	for file, empty := range map[string]func() runtime.Object{
		"karpentermachinetemplates": func() runtime.Object { return &v1alpha1.KarpenterMachineTemplate{} },
		"instancetypecatalogs":      func() runtime.Object { return &v1alpha1.InstanceTypeCatalog{} },
	} {
		t.Run(file, func(t *testing.T) {
			root := readSchema(t, file)
			for _, name := range []string{"metadata", "apiVersion", "kind"} {
				delete(root.Properties, name)
			}
			from := &generator{t: t, random: rand.New(rand.NewPCG(1, 2)), values: map[string][]any{}}
			changed := map[string]string{}
			for range 500 {
				before := from.value(&root, "").(map[string]any)
				for name, after := range map[string]any{"JSON": throughJSON(t, before, empty()), "unstructured content": throughUnstructured(t, before, empty())} {
					for path, change := range changes(&root, before, after, nil) {
						changed[path] = name + ": " + change
					}
				}
			}
			for _, path := range slices.Sorted(maps.Keys(changed)) {
				t.Errorf("%s changes, %s", path, changed[path])
			}
		})
	}
}

// ofOthers are fields of types that other projects define, in which an empty value means the same as none.
var ofOthers = []string{".matchLabels", ".matchExpressions", ".matchExpressions.0.values", "status.from.metadata.labels", "status.from.metadata.annotations"}

// changes returns the fields that differ between an object and what is left of it, by their paths. The default of
// each boolean is false, and in a status, 0 means the same as no number, and {} the same as no status.
func changes(schema *apiextensions.JSONSchemaProps, before, after any, path []string) map[string]string {
	found := map[string]string{}
	at := strings.Join(path, ".")
	othersDefine := slices.ContainsFunc(ofOthers, func(field string) bool { return strings.HasSuffix(at, field) })
	if (othersDefine || at == "status") && isEmpty(before) && after == nil {
		return found
	}
	switch {
	case len(schema.Properties) > 0:
		was, is := asMap(before), asMap(after)
		if was == nil != (is == nil) {
			break
		}
		for name := range schema.Properties {
			maps.Copy(found, changes(new(schema.Properties[name]), was[name], is[name], append(slices.Clone(path), name)))
		}
		return found
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		was, is := asMap(before), asMap(after)
		if was == nil != (is == nil) || !cmp.Equal(slices.Sorted(maps.Keys(was)), slices.Sorted(maps.Keys(is))) {
			break
		}
		for key := range was {
			maps.Copy(found, changes(schema.AdditionalProperties.Schema, was[key], is[key], append(slices.Clone(path), "*")))
		}
		return found
	case schema.Items != nil:
		was, _ := before.([]any)
		is, _ := after.([]any)
		if was == nil != (is == nil) || len(was) != len(is) {
			break
		}
		for i := range was {
			maps.Copy(found, changes(schema.Items.Schema, was[i], is[i], append(slices.Clone(path), "0")))
		}
		return found
	case cmp.Equal(before, after), before == false && after == nil,
		path[0] == "status" && isNone(before) && isNone(after),
		schema.XIntOrString && sameQuantity(before, after),
		sameTime(before, after):
		return found
	}
	found[at] = fmt.Sprintf("from %.80s to %.80s", text(before), text(after))
	return found
}

func asMap(value any) map[string]any {
	content, _ := value.(map[string]any)
	return content
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return lo.EveryBy(slices.Collect(maps.Values(value)), isNone)
	case []any:
		return len(value) == 0
	default:
		return false
	}
}

func isNone(value any) bool {
	return value == nil || value == int64(0)
}

// sameQuantity reports whether two quantities are the same. Those beyond 64 bits do not count: Kubernetes itself writes
// others for them.
func sameQuantity(before, after any) bool {
	was, err := resource.ParseQuantity(fmt.Sprint(before))
	is, otherErr := resource.ParseQuantity(fmt.Sprint(after))
	return err == nil && otherErr == nil && (was.Cmp(is) == 0 || was.CmpInt64(math.MaxInt64) >= 0 || was.CmpInt64(-math.MaxInt64) <= 0)
}

// sameTime reports whether two times are the same second.
func sameTime(before, after any) bool {
	was, err := time.Parse(time.RFC3339, fmt.Sprint(before))
	is, otherErr := time.Parse(time.RFC3339, fmt.Sprint(after))
	return err == nil && otherErr == nil && was.Truncate(time.Second).Equal(is)
}

func text(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// throughJSON returns what a client writes as JSON after it has read an object.
func throughJSON(t *testing.T, before any, object runtime.Object) any {
	t.Helper()
	if err := utiljson.Unmarshal([]byte(text(before)), object); err != nil {
		t.Fatal(err)
	}
	var after any
	if err := utiljson.Unmarshal([]byte(text(object.DeepCopyObject())), &after); err != nil {
		t.Fatal(err)
	}
	return after
}

// throughUnstructured returns the same for a client that converts unstructured objects.
func throughUnstructured(t *testing.T, before map[string]any, object runtime.Object) any {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(before, object); err != nil {
		t.Fatal(err)
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// generator generates random values that a schema accepts.
type generator struct {
	t      *testing.T
	random *rand.Rand
	// values are those that a field without fields of its own accepts, by its path.
	values map[string][]any
}

// value returns a value for the schema of a field. Objects, maps and lists are empty often.
func (g *generator) value(schema *apiextensions.JSONSchemaProps, path string) any {
	switch {
	case len(schema.Properties) > 0:
		content, outOf4 := map[string]any{}, g.random.IntN(5)
		names := slices.Sorted(maps.Keys(schema.Properties))
		least := min(len(names), int(lo.FromPtr(schema.MinProperties)))
		if len(schema.XValidations) > 0 { // they refuse an empty object
			least = max(least, 1)
		}
		for i, name := range names {
			if slices.Contains(schema.Required, name) || g.random.IntN(4) < outOf4 || len(names)-i <= least-len(content) {
				content[name] = g.value(new(schema.Properties[name]), path+"."+name)
			}
		}
		return content
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		content := map[string]any{}
		for i := range g.count(schema.MinProperties) {
			content[fmt.Sprintf("key-%d", i)] = g.value(schema.AdditionalProperties.Schema, path+".*")
		}
		return content
	case schema.Items != nil:
		content := []any{}
		for range g.count(schema.MinItems) {
			content = append(content, g.value(schema.Items.Schema, path+".0"))
		}
		return content
	default:
		return g.leaf(schema, path)
	}
}

// count returns how many entries a map or a list gets.
func (g *generator) count(least *int64) int {
	return int(lo.FromPtr(least)) + g.random.IntN(3)
}

func (g *generator) leaf(schema *apiextensions.JSONSchemaProps, path string) any {
	if _, known := g.values[path]; !known {
		accepts := validator(g.t, schema)
		for _, candidate := range candidates(schema) {
			stored, ok := accepts(candidate)
			if !ok || stored == "null" && !schema.Nullable && lo.FromPtr(schema.XPreserveUnknownFields) == false {
				continue
			}
			var value any
			if err := utiljson.Unmarshal([]byte(stored), &value); err != nil {
				g.t.Fatal(err)
			}
			g.values[path] = append(g.values[path], value)
		}
	}
	values := g.values[path]
	return values[g.random.IntN(len(values))]
}
