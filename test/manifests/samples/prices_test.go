// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"math"
	"os"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// Each adjustment of the sample for prices has an effect on the imported catalog that it is for, and the servers have the prices
// of docs/guides/prices.md.
func TestPrices(t *testing.T) {
	found := map[string]*v1alpha1.InstanceTypeCatalog{}
	for _, object := range createAll(t, "prices") {
		c := &v1alpha1.InstanceTypeCatalog{}
		convert(t, object.Object, c)
		found[c.Name] = c
	}
	content, err := os.ReadFile("../../../config/samples/aws/instancetypecatalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	adjusted := &v1alpha1.InstanceTypeCatalog{}
	convert(t, decode(t, content)[0].Object, adjusted)
	if found[adjusted.Name] == nil || found["own-servers"] == nil {
		t.Fatalf("the sample has %v, want own-servers and adjustments for %s", found, adjusted.Name)
	}
	adjusted.Spec.Pricing = found[adjusted.Name].Spec.Pricing
	for _, c := range []*v1alpha1.InstanceTypeCatalog{adjusted, found["own-servers"]} {
		checked := catalog.Check(&c.Spec)
		if problems := append(checked.Problems, checked.Adjustments...); checked.InstanceTypes == 0 || len(problems) > 0 {
			t.Errorf("%s has %d instance types, and problems %v", c.Name, checked.InstanceTypes, problems)
		}
	}
	types, _ := catalog.Expand(&found["own-servers"].Spec)
	const power, purchase, operations = 420.0 / 1000 * 1.4 * 0.28, 9400.0 / (60 * 730), 0.08
	if o := types[0].Offerings[0]; math.Abs(o.ListPrice-power-purchase) > 1e-9 || math.Abs(o.Price-o.ListPrice-operations) > 1e-9 {
		t.Errorf("a server has the price %v and the list price %v, want %v more than %v", o.Price, o.ListPrice, operations, power+purchase)
	}
}
