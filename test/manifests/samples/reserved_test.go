// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
	"github.com/karpenter-capi/karpenter-capi/test/harness/counts"
)

// notYet are fields of other versions than those in bin/crds: of vSphere since v1.16, and of Azure's main branch.
var notYet = map[string]string{"VSphereMachine": "naming", "AzureMachine": "virtualMachineScaleSetID"}

// The fields that only base templates can set exist in the CRDs of the providers. A field with a mistake in its name would
// protect nothing.
func TestReservedFieldsExist(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "bin", "crds", "*", "infrastructure.*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found the files %v (%v)", files, err)
	}
	reserved, checked := tenancy.FieldsByKind(), 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definition := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, &definition); err != nil {
			t.Fatal(err)
		}
		kind, isTemplate := strings.CutSuffix(definition.Spec.Names.Kind, "Template")
		version := definition.Spec.Versions[len(definition.Spec.Versions)-1]
		schema := version.Schema.OpenAPIV3Schema.Properties["spec"]
		if isTemplate {
			schema = schema.Properties["template"].Properties["spec"]
		}
		for _, field := range reserved[kind] {
			checked++
			if has(&schema, strings.Split(field, ".")) == (notYet[kind] == field) {
				t.Errorf("%s %s: field %s exists: %t", definition.Spec.Names.Kind, version.Name, field, notYet[kind] == field)
			}
		}
	}
	if checked == 0 {
		t.Fatal("no field was looked for")
	}
	counts.Print(t, fmt.Sprintf("%d reserved fields exist", checked))
}

// has reports whether a schema has a field, which can be in the items of lists on the way.
func has(schema *apiextensionsv1.JSONSchemaProps, keys []string) bool {
	for schema.Items != nil {
		schema = schema.Items.Schema
	}
	if len(keys) == 0 {
		return true
	}
	next, found := schema.Properties[keys[0]]
	return found && has(&next, keys[1:])
}
