// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// sample is a folder of config/samples, as read from the API server.
type sample struct {
	template *v1alpha1.KarpenterMachineTemplate
	bases    generate.Bases
	objects  []*unstructured.Unstructured
}

// apply creates a sample until the test ends.
func apply(t *testing.T, folder string) *sample {
	t.Helper()
	s := &sample{objects: createAll(t, folder)}
	templates := s.ofKind(v1alpha1.Kind)
	if len(templates) != 1 {
		t.Fatalf("%s has %d KarpenterMachineTemplates, want one", folder, len(templates))
	}
	s.template = &v1alpha1.KarpenterMachineTemplate{}
	if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(templates[0]), s.template); err != nil {
		t.Fatal(err)
	}
	spec := s.template.Spec.Template.Spec
	if ref := spec.InfrastructureRef; ref != nil {
		s.bases.Infrastructure = s.named(t, ref.Kind, ref.Name)
	}
	if ref := spec.Bootstrap.ConfigRef; ref.IsDefined() {
		s.bases.Bootstrap = s.named(t, ref.Kind, ref.Name)
	}
	s.allow(t, lo.FromPtr(spec.Bootstrap.DataSecretName))
	return s
}

// allow sets what the template may refer to by default, and checks its base templates. A Secret with bootstrap
// data must be allowed by the option that the sample mentions.
func (s *sample) allow(t *testing.T, secret string) {
	t.Helper()
	rules, err := tenancy.Parse(secret, "", "")
	if err != nil {
		t.Fatal(err)
	}
	s.bases.Allowed = tenancy.Allowed{Cluster: cluster, Rules: rules, Own: tenancy.NewOwn()}
	for _, base := range lo.Compact([]*unstructured.Unstructured{s.bases.Infrastructure, s.bases.Bootstrap}) {
		s.bases.Allowed.Own.AddTemplate(base, cluster)
		if err := s.bases.Allowed.Base(base); err != nil {
			t.Error(err)
		}
	}
	if err := s.bases.Allowed.Bootstrap(secret); err != nil {
		t.Error(err)
	}
}

// createAll creates the objects of a folder of config/samples until the test ends.
func createAll(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, file := range resources(t, folder) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range decode(t, content) {
			create(t, object)
			objects = append(objects, object)
		}
	}
	return objects
}

// resources returns the files in the kustomization of a folder, which must list all of them.
func resources(t *testing.T, folder string) []string {
	t.Helper()
	folder = filepath.Join("..", "..", "..", "config", "samples", folder)
	content, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal(content, &kustomization); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, name := range kustomization.Resources {
		files = append(files, filepath.Join(folder, name))
	}
	if all, _ := filepath.Glob(filepath.Join(folder, "*.yaml")); len(all) != len(files)+1 {
		t.Errorf("the kustomization of %s lists %d of %d files", folder, len(files), len(all)-1)
	}
	return files
}

// decode returns the objects of a YAML file.
func decode(t *testing.T, content []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// create creates an object until the test ends.
func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := apiServer.Create(t.Context(), object); err != nil {
		t.Fatalf("%s %s: %v", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
	}
	t.Cleanup(func() {
		// The context of the test has ended by then. No controller of Cluster API runs that would remove its finalizers.
		ctx := context.Background()
		withoutFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := errors.Join(apiServer.Patch(ctx, object, withoutFinalizers), apiServer.Delete(ctx, object)); err != nil {
			t.Error(err)
		}
	})
}

// ofKind returns the objects of a kind.
func (s *sample) ofKind(kind string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, object := range s.objects {
		if object.GetKind() == kind {
			objects = append(objects, object)
		}
	}
	return objects
}

// named returns the object of a kind that a reference names.
func (s *sample) named(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range s.ofKind(kind) {
		if object.GetName() == name {
			return object
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// types returns the instance types that the template of a sample offers from its catalogs.
func (s *sample) types(t *testing.T) ([]catalog.Type, []catalog.Problem) {
	t.Helper()
	var catalogs []*v1alpha1.InstanceTypeCatalog
	for _, ref := range s.template.Spec.CatalogRefs {
		c := &v1alpha1.InstanceTypeCatalog{}
		convert(t, s.named(t, v1alpha1.CatalogKind, ref.Name).Object, c)
		catalogs = append(catalogs, c)
	}
	return catalog.TypesOf(s.template, nil, catalogs...)
}
