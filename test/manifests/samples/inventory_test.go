// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/inventory"
)

// The API server accepts the sample with inventories, each offering of its catalogs is counted, and the quota that it shows allows as
// many machines as its numbers say.
func TestInventory(t *testing.T) {
	pools := map[string][]inventory.Pool{}
	for _, object := range createAll(t, "inventory") {
		if object.GetKind() != v1alpha1.CatalogKind {
			continue
		}
		c := &v1alpha1.InstanceTypeCatalog{}
		convert(t, object.Object, c)
		if checked := catalog.Check(&c.Spec); checked.InstanceTypes == 0 || len(checked.Problems) > 0 {
			t.Errorf("%s has %d instance types, and problems %v", c.Name, checked.InstanceTypes, checked.Problems)
		}
		types, _ := catalog.Expand(&c.Spec)
		for i := range types {
			for _, o := range types[i].Offerings {
				if len(o.Pools) == 0 {
					t.Errorf("%s in %s is not counted", types[i].Name, o.Zone)
				}
				pools[types[i].Name] = o.Pools
			}
		}
	}

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	watches, err := inventory.NewWatches(t.Context(), config, http, apiServer.RESTMapper(), cluster.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	quota := slices.Concat(pools["m1.large"], pools["m1.xlarge"])
	watches.Need("quota", quota)
	counts, unknown := watches.Counts(t.Context(), quota)
	if len(unknown) > 0 {
		t.Fatal(unknown)
	}
	free := lo.MapValues(map[string][]inventory.Pool{"m1.large": pools["m1.large"], "m1.xlarge": pools["m1.xlarge"]}, func(of []inventory.Pool, _ string) []int64 {
		return lo.Map(of, func(pool inventory.Pool, _ int) int64 { return counts[pool].Free })
	})
	if diff := cmp.Diff(map[string][]int64{"m1.large": {4, 8}, "m1.xlarge": {2, 4}}, free); diff != "" {
		t.Errorf("machines by CPUs and by memory (-want +got):\n%s", diff)
	}
}
