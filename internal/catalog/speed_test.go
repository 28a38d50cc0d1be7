// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The size for which the documented figures are valid.
const (
	manyTypes     = 800
	manyZones     = 3 // with two capacity types each
	manyTemplates = 5
)

// memoryLimit is the documented memory limit for manyTemplates.
const memoryLimit = 200 << 20

// templateOf returns a template, and a catalog for it with a number of instance types, each with 6 offerings.
func templateOf(name string, size int) (*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceTypeCatalog) {
	large, catalog := template(name), listed()
	catalog.Name, catalog.UID = name, types.UID(name)
	large.Name, large.UID, large.Generation, large.ResourceVersion = name, types.UID(name), 1, "1"
	for i := range size {
		instanceType := v1alpha1.InstanceType{
			Name:     fmt.Sprintf("type-%03d", i),
			Capacity: list("cpu", fmt.Sprint(i%64+1), "memory", fmt.Sprintf("%dGi", i%256+1), "ephemeral-storage", "80Gi"),
			Labels: map[string]v1alpha1.LabelValue{
				"kubernetes.io/arch": "arm64", "topology.kubernetes.io/region": "r", v1alpha1.InstanceFamilyLabel: v1alpha1.LabelValue(fmt.Sprintf("f%d", i/10)),
				"example.com/generation": v1alpha1.LabelValue(fmt.Sprint(i % 7)),
			},
		}
		for zone := range manyZones {
			for _, capacityType := range []v1alpha1.CapacityType{"on-demand", "spot"} {
				instanceType.Offerings = append(instanceType.Offerings, v1alpha1.Offering{
					Zones: []v1alpha1.Zone{v1alpha1.Zone(fmt.Sprintf("zone-%d", zone))}, CapacityType: capacityType, Price: v1alpha1.Decimal(fmt.Sprintf("%d.%03d", i, zone)), MaxMachines: new(int32(50)),
				})
			}
		}
		catalog.Spec.InstanceTypes = append(catalog.Spec.InstanceTypes, instanceType)
	}
	// The largest status that a template can have.
	for i := range 1000 {
		o := catalog.Spec.InstanceTypes[i%size]
		large.Status.UnavailableOfferings = append(large.Status.UnavailableOfferings, v1alpha1.UnavailableOffering{
			InstanceType: o.Name, Zone: string(o.Offerings[i%6].Zones[0]), CapacityType: string(o.Offerings[i%6].CapacityType), Until: metav1.NewTime(began.Add(time.Hour)),
		})
		large.Status.LimitedOfferings = append(large.Status.LimitedOfferings, v1alpha1.LimitedOffering{
			InstanceType: o.Name, Zone: string(o.Offerings[i%6].Zones[0]), CapacityType: string(o.Offerings[i%6].CapacityType), NodeClaims: 7, Limit: 50,
		})
	}
	return large, catalog
}

// listedTypes is the number of instance types of a large InstanceTypeCatalog, each with listedOfferings.
const (
	listedTypes     = 1000
	listedOfferings = 9
)

// largestOf returns an InstanceTypeCatalog of the largest size that is supported, and a template that refers
// to it.
func largestOf(name string) (*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceTypeCatalog) {
	large, listed := templateOf(name, listedTypes)
	for i := range listed.Spec.InstanceTypes {
		given := &listed.Spec.InstanceTypes[i]
		given.Price = v1alpha1.Decimal(fmt.Sprintf("%d.5", i))
		given.Offerings = []v1alpha1.Offering{
			{Zones: []v1alpha1.Zone{"zone-0", "zone-1", "zone-2"}, CapacityType: "on-demand", MaxMachines: new(int32(50))},
			{Zones: []v1alpha1.Zone{"zone-0", "zone-1", "zone-2"}, CapacityType: "spot", MaxMachines: new(int32(50))},
			{Zones: []v1alpha1.Zone{"zone-0", "zone-1", "zone-2"}, CapacityType: "reserved", Reservation: &v1alpha1.Reservation{ID: fmt.Sprintf("r-%d", i), Count: 7}},
		}
	}
	return large, listed
}

func BenchmarkCatalog(b *testing.B) {
	b.Run("large", func(b *testing.B) {
		large, listed := templateOf("general", manyTypes)
		benchmark(b, large, manyTypes*2*manyZones, *listed)
	})
	b.Run("largest", func(b *testing.B) {
		large, listed := largestOf("general")
		benchmark(b, large, listedTypes*listedOfferings, *listed)
	})
	b.Run("memory", func(b *testing.B) {
		var used uint64
		for b.Loop() {
			used = memoryOf(b, manyTemplates)
		}
		b.ReportMetric(float64(used)/(1<<20), "MiB/5-templates")
	})
}

// benchmark measures how long a template with a number of offerings takes: without a change, after a change of
// its status, and after one of its spec.
func benchmark(b *testing.B, large *v1alpha1.KarpenterMachineTemplate, offerings int, listed ...v1alpha1.InstanceTypeCatalog) {
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(offerings), "ns/offering")
	}
	b.Run("unchanged", func(b *testing.B) {
		b.Logf("%d CPUs, GOMAXPROCS %d, %s, %s/%s; %d offerings", runtime.NumCPU(), runtime.GOMAXPROCS(0), runtime.Version(), runtime.GOOS, runtime.GOARCH, offerings)
		c, w := newWorld(b)
		w.shared = listed
		ask(b, c, large)
		w.reads.Store(0)
		for b.Loop() {
			ask(b, c, large)
		}
		b.ReportMetric(float64(w.reads.Load()), "reads")
		report(b)
	})
	b.Run("status-changed", func(b *testing.B) {
		c, w := newWorld(b)
		w.shared = listed
		changing := large.DeepCopy()
		for i := 0; b.Loop(); i++ {
			changing.ResourceVersion = fmt.Sprint(i)
			ask(b, c, changing)
		}
		report(b)
	})
	b.Run("spec-changed", func(b *testing.B) {
		c, w := newWorld(b)
		w.shared = listed
		changing := large.DeepCopy()
		for b.Loop() {
			changing.Generation++
			changing.ResourceVersion = fmt.Sprint(changing.Generation)
			ask(b, c, changing)
		}
		report(b)
	})
}

// The benchmark prints times. This test counts allocations, which depend neither on the
// machine nor on its load.
func TestTheCatalogIsFast(t *testing.T) {
	type allocations struct{ unchanged, status, spec float64 }
	count := func(size int) (a allocations) {
		template, listed := templateOf("general", size)
		c, w := newWorld(t)
		w.shared = []v1alpha1.InstanceTypeCatalog{*listed}
		ask(t, c, template)
		w.reads.Store(0)
		a.unchanged = testing.AllocsPerRun(10, func() { ask(t, c, template) })
		if w.reads.Load() > 0 {
			t.Errorf("a known template takes %d reads", w.reads.Load())
		}
		marks := &template.Status.UnavailableOfferings
		a.status = testing.AllocsPerRun(3, func() { *marks = (*marks)[1:]; template.ResourceVersion += "x"; ask(t, c, template) })
		a.spec = testing.AllocsPerRun(3, func() { template.Generation++; template.ResourceVersion += "x"; ask(t, c, template) })
		return a
	}
	small, large := count(manyTypes/4), count(manyTypes)
	t.Logf("allocations: %+v of a small template, %+v of a large one", small, large)
	if small.unchanged != large.unchanged || large.unchanged > 8 { // to compare the versions of its catalogs
		t.Errorf("a known template is computed again: %+v, and %+v", small, large)
	}
	if large.status > 4.4*small.status || large.spec > 4.4*small.spec {
		t.Errorf("a change allocates more than in proportion to the template's size: %+v, and %+v", small, large)
	}
	if large.status > large.spec/10 {
		t.Errorf("a change of the status allocates %v, nearly as much as one of the spec, %v", large.status, large.spec)
	}
	if used := memoryOf(t, 1) * manyTemplates; used > memoryLimit {
		t.Errorf("%d templates take %d MiB, want at most %d", manyTemplates, used>>20, memoryLimit>>20)
	}
}

func ask(t testing.TB, c *Catalog, template *v1alpha1.KarpenterMachineTemplate) {
	t.Helper()
	if got, err := c.InstanceTypes(t.Context(), template, began); err != nil || len(got) == 0 {
		t.Fatalf("got %d instance types and %v", len(got), err)
	}
}

// memoryOf returns the memory that the Catalog of some large templates uses, with what
// Karpenter computes from the instance types, but without the templates and their catalogs.
func memoryOf(t testing.TB, count int) uint64 {
	t.Helper()
	var templates []*v1alpha1.KarpenterMachineTemplate
	c, w := newWorld(t)
	for i := range count {
		template, listed := templateOf(fmt.Sprintf("template-%d", i), manyTypes)
		templates, w.shared = append(templates, template), append(w.shared, *listed)
	}
	before := heap()
	for _, template := range templates {
		ask(t, c, template)
		instanceTypes, _ := c.InstanceTypes(t.Context(), template, began)
		for _, instanceType := range instanceTypes {
			instanceType.Allocatable()
		}
	}
	after := heap()
	runtime.KeepAlive(c)
	runtime.KeepAlive(templates)
	runtime.KeepAlive(w)
	return max(after, before) - before
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// The first use of an offering changes neither the types, so that they are not examined again, nor the instance
// types that are built from them. An offering that no longer exists changes only the instance types.
func TestFirstUseIsFast(t *testing.T) {
	large, listed := templateOf("general", manyTypes)
	c, w := newWorld(t)
	w.shared = []v1alpha1.InstanceTypeCatalog{*listed}
	ask(t, c, large)
	state := func() (*Type, any) {
		t.Helper()
		types, _, err := c.Types(t.Context(), large)
		if err != nil {
			t.Fatal(err)
		}
		instanceTypes, err := c.InstanceTypes(t.Context(), large, began)
		if err != nil {
			t.Fatal(err)
		}
		return &types[0], &instanceTypes[0]
	}
	types, built := state()
	for i, tc := range []struct {
		key      Key
		rebuilds bool
	}{
		{key: Key{"type-001", "zone-0", "spot"}},
		{key: Key{"type-002", "zone-0", "spot"}},
		{key: Key{"gone", "zone-0", "spot"}, rebuilds: true},
		{key: Key{"type-003", "zone-9", "spot"}, rebuilds: true},
		{key: Key{"type-003", "zone-0", "spot"}},
	} {
		if err := w.Create(t.Context(), nodeClaim(fmt.Sprint(i), tc.key)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Refresh(t.Context(), large); err != nil {
			t.Fatal(err)
		}
		nowTypes, nowBuilt := state()
		if nowTypes != types {
			t.Errorf("the first use of %s changes the types", tc.key)
		}
		if (nowBuilt != built) != tc.rebuilds {
			t.Errorf("the first use of %s builds the instance types again: %t", tc.key, nowBuilt != built)
		}
		types, built = nowTypes, nowBuilt
		if found := byName(c.entries["general"].offered)[tc.key.InstanceType]; found == nil || !slices.ContainsFunc(found.Offerings, func(o *cloudprovider.Offering) bool { return o.Zone() == tc.key.Zone }) {
			t.Errorf("offering %s is in use, and not listed", tc.key)
		}
	}
}
