// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// theirNames are the labels and annotations of karpenter-provider-cluster-api, at the commit that
// testdata/clusterapinodeclasses.yaml names (pkg/apis/v1alpha1/labels.go, pkg/cloudprovider/const.go,
// pkg/providers/providers.go), and the label of Karpenter core with its kind. It has no finalizer.
var theirNames = []string{
	"capacity.karpenter.cluster.x-k8s.io/cpu",
	"capacity.karpenter.cluster.x-k8s.io/memory",
	"cluster.x-k8s.io/machine",
	"karpenter.cluster.x-k8s.io/clusterapinodeclass",
	"karpenter.cluster.x-k8s.io/instance-cpu",
	"karpenter.cluster.x-k8s.io/instance-family",
	"karpenter.cluster.x-k8s.io/instance-memory",
	"karpenter.cluster.x-k8s.io/instance-size",
	"node.cluster.x-k8s.io/karpenter-member",
}

// sharedNames are labels of Nodes that both have for the same property of an instance type. No program writes them to
// Nodes of the other one (docs/design/decisions/0043-the-group-is-shared.md).
var sharedNames = []string{v1alpha1.InstanceCPULabel, v1alpha1.InstanceFamilyLabel, v1alpha1.InstanceMemoryLabel, v1alpha1.InstanceSizeLabel}

// The other provider for Cluster API has the same group, and a cluster can have both during a migration.
func TestKindsOfTheOtherProvider(t *testing.T) {
	if _, err := envtest.InstallCRDs(apiConfig, envtest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "clusterapinodeclasses.yaml")}, ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
	both, err := client.New(apiConfig, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for kind, text := range map[string]string{
		"ours":       strings.Replace(validTemplate, "{name: general}", "{name: neighbour}", 1),
		"ours again": strings.Replace(validCatalog, "{name: general}", "{name: neighbour}", 1),
		"theirs": `
apiVersion: karpenter.cluster.x-k8s.io/v1alpha1
kind: ClusterAPINodeClass
metadata: {name: neighbour}
spec: {scalableResourceSelector: {matchLabels: {team: platform}}}
`,
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := both.Create(t.Context(), object); err != nil {
			t.Errorf("creating %s: %v", kind, err)
		}
	}

	resources, err := discovery.NewDiscoveryClientForConfigOrDie(apiConfig).ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	var names []string // those with which kubectl finds a kind
	for _, resource := range resources.APIResources {
		if !strings.Contains(resource.Name, "/") {
			names = append(append(names, resource.Name, resource.SingularName), resource.ShortNames...)
		}
	}
	slices.Sort(names)
	want := []string{"capinc", "capincs", "clusterapinodeclass", "clusterapinodeclasses", "instancetypecatalog", "instancetypecatalogs", "itc",
		"karpentermachinetemplate", "karpentermachinetemplates", "kmt"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names of the group (-want +got):\n%s", diff)
	}
}

// A label or annotation that both have would be read by one and written by the other.
func TestNamesOfTheOtherProvider(t *testing.T) {
	content, err := os.ReadFile("names_test.go") // TestAllNamesAreTested: it has all names
	if err != nil {
		t.Fatal(err)
	}
	own := []string{v1alpha1.Group + "/" + strings.ToLower(v1alpha1.Kind)} // Karpenter core sets it on Nodes
	for _, match := range regexp.MustCompile(`\{v1alpha1\.\w+(?:Label|Annotation|Finalizer), "([^"]+)"\}`).FindAllStringSubmatch(string(content), -1) {
		own = append(own, match[1])
	}
	if len(own) < 40 {
		t.Fatalf("found %d names, want all", len(own))
	}
	equal := slices.DeleteFunc(slices.Clone(theirNames), func(name string) bool { return name == v1alpha1.OtherMemberLabel || !slices.Contains(own, name) })
	if diff := cmp.Diff(sharedNames, equal); diff != "" {
		t.Errorf("names that both have (-want +got):\n%s", diff)
	}
}
