// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
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

// Names have a part of the hash, so that they fit into labels; labels and hashes for drift have enough of it to be
// unique.
func TestHashLengths(t *testing.T) {
	generated, err := generate(fixture.TemplateWithPatches(), fixture.Spot)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []metav1.Object{generated.Resource, generated.Objects[0]} {
		hash := object.GetLabels()[v1alpha1.TemplateHashLabel]
		if len(hash) != hashLength || !strings.HasSuffix(object.GetName(), "-"+hash[:nameHashLength]) {
			t.Errorf("got name %s and hash %s", object.GetName(), hash)
		}
	}
}
