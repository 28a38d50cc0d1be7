// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// deployed is a release of the operator's chart for one Cluster.
type deployed struct {
	release, namespace string
	values             Values
}

// The chart accepts the values of the samples for fleets, and objects of two Clusters never have the same name. The Clusters
// have the same name in different namespaces, or different names in one namespace.
func TestFleet(t *testing.T) {
	blue, green := map[string]any{"cluster": "blue", "namespace": "default"}, map[string]any{"cluster": "green", "namespace": "default"}
	blues := map[string]any{"cluster": "blue", "namespace": "other"}
	argo := sample(t, "applicationset.yaml", "ApplicationSet")
	var releases []deployed
	for _, element := range []map[string]any{blue, green, blues} {
		releases = append(releases, deployed{
			release:   execute(t, field(t, argo, "spec", "template", "spec", "source", "helm", "releaseName"), element),
			namespace: execute(t, field(t, argo, "spec", "template", "spec", "destination", "namespace"), element),
			values:    parse(t, execute(t, field(t, argo, "spec", "template", "spec", "source", "helm", "values"), element)),
		})
	}
	flux := sample(t, "helmrelease.yaml", "HelmRelease")
	values, _, err := unstructured.NestedMap(flux.Object, "spec", "values")
	if err != nil {
		t.Fatal(err)
	}
	flux1 := deployed{field(t, flux, "spec", "releaseName"), flux.GetNamespace(), values}

	seen := map[string]string{}
	for _, d := range releases {
		for _, name := range d.render(t) {
			if other, taken := seen[name]; taken {
				t.Errorf("%s is in the releases %s and %s", name, other, d.release)
			}
			seen[name] = d.release
		}
	}
	for _, name := range flux1.render(t) {
		if seen[name] != flux1.release {
			t.Errorf("%s of Flux is not what Argo CD installs for the same Cluster", name)
		}
	}
}

// Each workload cluster gets the operator of its Cluster from the add-on provider for Helm.
func TestHelmChartProxy(t *testing.T) {
	proxy := sample(t, "helmchartproxy.yaml", "HelmChartProxy")
	values := parse(t, execute(t, field(t, proxy, "spec", "valuesTemplate"), map[string]any{
		"Cluster": map[string]any{"metadata": map[string]any{"name": "blue", "namespace": "default"}},
	}))
	d := deployed{field(t, proxy, "spec", "releaseName"), field(t, proxy, "spec", "namespace"), values}
	if names := strings.Join(d.render(t), "\n"); !strings.Contains(names, "Deployment ") {
		t.Errorf("it installs no operator, but:\n%s", names)
	}
	settings, _ := values["settings"].(map[string]any)
	if settings["clusterName"] != "blue" || settings["clusterNamespace"] != "default" {
		t.Errorf("the operator serves %v", settings)
	}
}

// render returns the names of the objects of a release.
func (d deployed) render(t *testing.T) []string {
	t.Helper()
	rendered, err := newHelm(t).Template(t.Context(), d.release, d.namespace, Operator, d.values)
	if err != nil {
		t.Fatal(err)
	}
	return objects(rendered).names()
}

// sample returns the last object of a kind in a file of config/fleet.
func sample(t *testing.T, file, kind string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(Root(), "config", "fleet", file))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(string(content))
	if err != nil {
		t.Fatal(err)
	}
	var found *unstructured.Unstructured
	for _, object := range decoded {
		if object.GetKind() == kind {
			found = object
		}
	}
	if found == nil {
		t.Fatalf("%s has no %s", file, kind)
	}
	return found
}

func field(t *testing.T, object *unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, found, err := unstructured.NestedString(object.Object, path...)
	if err != nil || !found {
		t.Fatalf("%s %s has no %s: %v", object.GetKind(), object.GetName(), strings.Join(path, "."), err)
	}
	return value
}

// execute fills in a Go template, as the tools of fleets do.
func execute(t *testing.T, text string, data map[string]any) string {
	t.Helper()
	parsed, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	filled := &strings.Builder{}
	if err := parsed.Execute(filled, data); err != nil {
		t.Fatal(err)
	}
	return filled.String()
}

func parse(t *testing.T, text string) Values {
	t.Helper()
	values := Values{}
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}
