// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"testing"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// The API server accepts the sample with devices, and Karpenter gets those of each of its instance types.
func TestDevices(t *testing.T) {
	claims := 0
	for _, object := range createAll(t, "devices") {
		if object.GetKind() != v1alpha1.CatalogKind {
			claims++
			continue
		}
		c := &v1alpha1.InstanceTypeCatalog{}
		convert(t, object.Object, c)
		types, problems := catalog.Expand(&c.Spec)
		if len(types) != len(c.Spec.InstanceTypes) || len(problems) > 0 {
			t.Errorf("%d of %d instance types can be used, and problems are %v", len(types), len(c.Spec.InstanceTypes), problems)
		}
		built, wrong := catalog.Build(&v1alpha1.KarpenterMachineTemplate{}, types)
		if len(wrong) > 0 {
			t.Error(wrong)
		}
		for _, it := range built {
			if len(it.DynamicResources.ResourceSliceTemplates) == 0 {
				t.Errorf("%s has no devices", it.Name)
			}
		}
	}
	if claims != 3 {
		t.Errorf("the sample has %d claims, want 3", claims)
	}
}
