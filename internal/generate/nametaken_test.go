// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"
	"testing"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Two offerings of a template with one name are an error of the second one.
func TestTwoOfferingsWithOneName(t *testing.T) {
	resource := func(name, hash string) *scalable.Resource {
		return scalable.New(&clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.TemplateHashLabel: hash}}})
	}
	known := names{}
	for _, step := range []struct {
		name, hash string
		taken      bool
	}{
		{name: "a-1", hash: "1x"},
		{name: "a-1", hash: "1x"}, // the same content
		{name: "b-1", hash: "1x"},
		{name: "a-1", hash: "1y", taken: true},
	} {
		err := known.add(resource(step.name, step.hash), fixture.Spot)
		if (err != nil) != step.taken {
			t.Errorf("%s with hash %s: got %v, want an error: %t", step.name, step.hash, err, step.taken)
		}
		if step.taken && (ReasonOf(err) != v1alpha1.ReasonNameTaken || !strings.Contains(err.Error(), "MachineDeployment a-1 is also the name for offering m5.large/us-east-1a/spot")) {
			t.Errorf("got %v with reason %s", err, ReasonOf(err))
		}
	}
}

// A resource in the cluster with the name of an offering, but another hash, takes the name. The message has both hashes.
func TestNameOfAnotherContent(t *testing.T) {
	deployment := func(name, hash string) *clusterv1.MachineDeployment {
		labels := lo.Assign(scalable.GeneratedLabels(fixture.Served, "general"), map[string]string{v1alpha1.TemplateHashLabel: hash})
		return &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: name, Labels: labels}}
	}
	known := names{}
	for _, name := range []string{"a-1", "b-1"} {
		if err := known.add(scalable.New(deployment(name, "1x")), catalog.Key{InstanceType: name}); err != nil {
			t.Fatal(err)
		}
	}
	taken, err := known.taken(t.Context(), fixture.Clusters(deployment("a-1", "1y"), deployment("b-1", "1x"), deployment("c-1", "1z")), "general")
	if err != nil {
		t.Fatal(err)
	}
	if problem := taken[catalog.Key{InstanceType: "a-1"}]; len(taken) != 1 || problem == nil || !strings.Contains(problem.Error(), `is "1y" and not "1x"`) {
		t.Errorf("got %v, want that only a-1 is taken, and both hashes", taken)
	}
}

// Names have a part of the hash, so that they fit into labels; labels and hashes for drift have enough of it to be
// unique.
func TestHashLengths(t *testing.T) {
	generated, err := generate(fixture.TemplateWithPatches(), fixture.Spot)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []metav1.Object{generated.Resource, generated.Objects[0]} {
		content := object.GetLabels()[v1alpha1.TemplateHashLabel]
		if len(content) != len("v1-")+32 || !strings.HasSuffix(object.GetName(), "-"+hash.InName(content)) {
			t.Errorf("got name %s and hash %s", object.GetName(), content)
		}
	}
}

// Names contain only what the API server accepts, also for instance types of clouds that use other characters.
func TestNamesOfInstanceTypes(t *testing.T) {
	rename := func(it *v1alpha1.InstanceType) { it.Name = "Standard_D9z~v5" }
	generated, err := generate(fixture.Template(), catalog.Key{InstanceType: "Standard_D9z~v5", Zone: "us-east-1a", CapacityType: "spot"}, rename)
	if err != nil {
		t.Fatal(err)
	}
	if name := generated.Resource.GetName(); !strings.HasPrefix(name, "general-standard-d9z-v5-us-east-1a-") {
		t.Errorf("got %s", name)
	}
}
