// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The annotations of a launch replace those of the launch before. Other annotations of the
// claim stay.
func TestLaunchAnnotates(t *testing.T) {
	before := map[string]string{
		"user": "own", v1alpha1.ScalableResourceAnnotation: "old", v1alpha1.TemplateHashAnnotation: "old",
		v1alpha1.TemplateRevisionAnnotation: "old", v1alpha1.PriceAnnotation: "0.1",
		v1alpha1.MachineHashesAnnotation: "version=old", v1alpha1.MachineHashVersionAnnotation: "old",
	}
	// An adopted resource has no template hash.
	launch := &Launch{annotations: map[string]string{
		v1alpha1.ScalableResourceAnnotation: "existing", v1alpha1.TemplateRevisionAnnotation: "new", v1alpha1.PriceAnnotation: "0.2",
	}}
	want := map[string]string{
		"user": "own", v1alpha1.ScalableResourceAnnotation: "existing", v1alpha1.TemplateRevisionAnnotation: "new", v1alpha1.PriceAnnotation: "0.2",
	}
	if diff := cmp.Diff(want, launch.Annotate(before)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(launch.annotations, launch.Annotate(nil)); diff != "" {
		t.Errorf("a claim without annotations (-want +got):\n%s", diff)
	}
	if before[v1alpha1.PriceAnnotation] != "0.1" {
		t.Error("the given annotations were changed")
	}
}
