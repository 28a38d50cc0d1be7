// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const before = `
metadata: {name: x, labels: {team: a}}
spec:
  source: aws us-east-1, 2026-11-20
  currency: USD
  pricing: {factors: [{capacityType: spot, factor: "0.5"}]}
  offerings:
  - {zones: [a, b]}
  - {zones: [a, b], capacityType: spot}
  instanceTypes:
  - {name: m1, price: "0.1", capacity: {cpu: "1", memory: 4Gi}, labels: {kubernetes.io/arch: amd64}}
  - {name: m2, price: "0.2", capacity: {cpu: "2", memory: 8Gi}, offerings: [{zones: [a], maxMachines: 5}]}
`

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		replace [2]string
		want    Differences
	}{
		"nothing": {[2]string{"m1", "m1"}, Differences{}},
		"the price of a type changes those of its offerings": {[2]string{`price: "0.1"`, `price: "0.12"`}, Differences{Changed: []TypeDifferences{
			{Name: "m1", Prices: []PriceChange{{"on-demand a, b", "0.1", "0.12"}, {"spot a, b", "0.05", "0.06"}}}}}},
		"a factor": {[2]string{`factor: "0.5"`, `factor: "0.4"`}, Differences{Changed: []TypeDifferences{
			{Name: "m1", Prices: []PriceChange{{"spot a, b", "0.05", "0.04"}}}}}},
		"a zone": {[2]string{"zones: [a, b], capacityType", "zones: [b, c], capacityType"}, Differences{Changed: []TypeDifferences{
			{Name: "m1", Other: []string{"offering spot a: removed", "offering spot c: added, price 0.05"}}}}},
		"capacity and labels": {[2]string{`memory: 4Gi}, labels: {kubernetes.io/arch: amd64}`, `memory: 5Gi}, labels: {tier: two}`}, Differences{Changed: []TypeDifferences{
			{Name: "m1", Other: []string{"capacity.memory: 4Gi → 5Gi", "label kubernetes.io/arch: amd64 → none", "label tier: none → two"}}}}},
		"a limit": {[2]string{"maxMachines: 5", "maxMachines: 6"}, Differences{Changed: []TypeDifferences{
			{Name: "m2", Other: []string{"offering on-demand a: maxMachines: 5 → 6"}}}}},
		"another type":   {[2]string{"name: m1", "name: m3"}, Differences{Added: []string{"m3"}, Removed: []string{"m1"}}},
		"of the catalog": {[2]string{"labels: {team: a}}\nspec:\n  source: aws us-east-1, 2026-11-20\n  currency: USD", "labels: {team: b}}\nspec:\n  source: today\n  currency: EUR"}, Differences{Other: []string{"source: aws us-east-1, 2026-11-20 → today", "currency: USD → EUR", "label team: a → b"}}},
		"in another way": {[2]string{`price: "0.1"`, `price: "0.10"`}, Differences{Other: []string{"the same instance types and prices, written in another way"}}},
		"a type that cannot be used": {[2]string{`{name: m1, price: "0.1"`, `{name: m1`}, Differences{Changed: []TypeDifferences{
			{Name: "m1", Other: []string{"offering on-demand a: removed", "offering on-demand b: removed", "offering spot a: removed", "offering spot b: removed",
				"capacity.cpu: 1 → none", "capacity.memory: 4Gi → none", "label kubernetes.io/arch: amd64 → none"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if !bytes.Contains([]byte(before), []byte(tc.replace[0])) {
				t.Fatalf("there is no %q", tc.replace[0])
			}
			after := load(t, bytes.Replace([]byte(before), []byte(tc.replace[0]), []byte(tc.replace[1]), 1))
			tc.want.Catalog = "x"
			if diff := cmp.Diff(&tc.want, Compare(load(t, []byte(before)), after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A catalog that does not exist yet has nothing.
func TestCompareWithNothing(t *testing.T) {
	got := Compare(&v1alpha1.InstanceTypeCatalog{}, load(t, []byte(before)))
	if diff := cmp.Diff([]string{"m1", "m2"}, got.Added); diff != "" || len(got.Removed)+len(got.Changed) > 0 {
		t.Errorf("%+v: added (-want +got):\n%s", got, diff)
	}
}

func TestPrintText(t *testing.T) {
	var out bytes.Buffer
	d := Differences{
		Catalog: "x", Added: []string{"m3"}, Removed: []string{"m4"}, Other: []string{"currency: USD → EUR"},
		Changed: []TypeDifferences{{Name: "m1", Prices: []PriceChange{{"spot a, b", "0.05", "0.06"}}, Other: []string{"capacity.memory: 4Gi → 5Gi"}}},
	}
	if err := printText(&out, &d); err != nil {
		t.Fatal(err)
	}
	want := `InstanceTypeCatalog x
  ~ currency: USD → EUR
  - m4
  + m3
  ~ m1
      price spot a, b: 0.05 → 0.06
      capacity.memory: 4Gi → 5Gi
1 instance types added, 1 removed, 1 changed
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
