// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

func TestOverlay(t *testing.T) {
	reserved := func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType, count, used int32) {
		it.Offerings = append(it.Offerings, v1alpha1.Offering{
			Zones: []v1alpha1.Zone{"b"}, CapacityType: "reserved", Price: "0", Reservation: &v1alpha1.Reservation{ID: "cr-1", Count: count},
		})
		if used > 0 {
			t.Status.LimitedOfferings = []v1alpha1.LimitedOffering{{InstanceType: "m5.large", Zone: "b", CapacityType: "reserved", NodeClaims: used, Limit: count}}
		}
	}
	// inTwoZones reserves 2 machines in the zones b and c, of which a number is in use.
	inTwoZones := func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType, used int32) {
		it.Offerings = append(it.Offerings, v1alpha1.Offering{
			Zones: []v1alpha1.Zone{"b", "c"}, CapacityType: "reserved", Price: "0", Reservation: &v1alpha1.Reservation{ID: "cr-1", Count: 2},
		})
		for _, zone := range []string{"b", "c"} {
			t.Status.LimitedOfferings = append(t.Status.LimitedOfferings, v1alpha1.LimitedOffering{InstanceType: "m5.large", Zone: zone, CapacityType: "reserved", NodeClaims: used, Limit: 2})
		}
	}
	for name, tc := range map[string]struct {
		change         func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceType)
		wantClosed     []string
		wantCapacity   int
		wantUnlaunched int // available, but not launchable
	}{
		"nothing": {change: func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceType) {}},
		"at its limit": {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) {
			it.Offerings[0].MaxMachines = new(int32(2))
			t.Status.LimitedOfferings = []v1alpha1.LimitedOffering{{InstanceType: "m5.large", Zone: "a", CapacityType: "on-demand", NodeClaims: 2, Limit: 2}}
		}, wantClosed: []string{"a/on-demand"}},
		"a limit that was raised": {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) {
			it.Offerings[0].MaxMachines = new(int32(3))
			t.Status.LimitedOfferings = []v1alpha1.LimitedOffering{{InstanceType: "m5.large", Zone: "a", CapacityType: "on-demand", NodeClaims: 2, Limit: 2}}
		}},
		"a limit that was removed": {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) {
			t.Status.LimitedOfferings = []v1alpha1.LimitedOffering{{InstanceType: "m5.large", Zone: "a", CapacityType: "on-demand", NodeClaims: 2, Limit: 2}}
		}},
		"the template is full": {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) {
			t.Spec.MaxMachines, t.Status.NodeClaims = new(int32(5)), 5
		}, wantClosed: []string{"a/on-demand", "a/spot", "b/on-demand"}},
		"the template has room": {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) {
			t.Spec.MaxMachines, t.Status.NodeClaims = new(int32(5)), 4
		}},
		"failed": {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) {
			t.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{InstanceType: "m5.large", Zone: "a", CapacityType: "spot", Until: metav1.NewTime(began.Add(1))}}
		}, wantClosed: []string{"a/spot"}},
		"a reservation that is not used":             {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) { reserved(t, it, 3, 0) }, wantCapacity: 3},
		"a reservation in use":                       {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) { reserved(t, it, 3, 1) }, wantCapacity: 2},
		"a reservation that is used up":              {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) { reserved(t, it, 3, 3) }, wantUnlaunched: 1},
		"a reservation of two zones in use":          {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) { inTwoZones(t, it, 1) }, wantCapacity: 2},
		"a reservation of two zones that is used up": {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) { inTwoZones(t, it, 2) }, wantUnlaunched: 2},
		"a reservation that was raised": {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) {
			reserved(t, it, 5, 2)
			t.Status.LimitedOfferings[0].Limit = 2
		}, wantCapacity: 3},
		"a reservation that is overused": {change: func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) { reserved(t, it, 3, 4) }, wantUnlaunched: 1},
	} {
		t.Run(name, func(t *testing.T) {
			input, instanceType := template("types"), m5large()
			tc.change(input, &instanceType)
			c, _ := newWorld(t, listed(instanceType))
			got, err := c.InstanceTypes(t.Context(), input, began)
			if err != nil {
				t.Fatal(err)
			}
			var closed []string
			capacity, unlaunched := 0, 0
			for _, offering := range got[0].Offerings {
				if !offering.Available {
					closed = append(closed, offering.Zone()+"/"+offering.CapacityType())
				} else if !offering.Launchable() {
					unlaunched++
				}
				capacity += offering.ReservationCapacity
			}
			slices.Sort(closed)
			if diff := cmp.Diff(tc.wantClosed, closed); diff != "" {
				t.Errorf("closed (-want +got):\n%s", diff)
			}
			if capacity != tc.wantCapacity || unlaunched != tc.wantUnlaunched {
				t.Errorf("got capacity %d, want %d; used up %d, want %d", capacity, tc.wantCapacity, unlaunched, tc.wantUnlaunched)
			}
		})
	}
}

// While an adopted MachineDeployment rolls out because its failure domain has changed, its labels have the zone before.
func TestOverlayOfAnotherZone(t *testing.T) {
	existing := machineDeployment("md", map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi", v1alpha1.AdoptedAnnotation: ""})
	existing.Spec.Template.Spec.FailureDomain = "b"
	other := machineDeployment("other", map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi"})
	for name, tc := range map[string]struct {
		resource      v1alpha1.ScalableResourceStatus
		wantAvailable bool
	}{
		"rolling out":                 {resource: v1alpha1.ScalableResourceStatus{Kind: "MachineDeployment", Name: "md", Paused: true}},
		"not rolling out":             {resource: v1alpha1.ScalableResourceStatus{Kind: "MachineDeployment", Name: "md"}, wantAvailable: true},
		"a MachinePool with its name": {resource: v1alpha1.ScalableResourceStatus{Kind: "MachinePool", Name: "md", Paused: true}, wantAvailable: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newWorld(t, existing.DeepCopy(), other.DeepCopy())
			input := template()
			input.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
			tc.resource.InstanceType, tc.resource.Zone, tc.resource.CapacityType = "md", "a", "on-demand"
			input.Status.ScalableResources = []v1alpha1.ScalableResourceStatus{tc.resource}
			instanceTypes, err := c.InstanceTypes(t.Context(), input, began)
			if err != nil {
				t.Fatal(err)
			}
			found := byName(instanceTypes)
			if got := found["md"].Offerings[0]; got.Zone() != "b" || got.Available != tc.wantAvailable {
				t.Errorf("the offering in zone %q is available: %t, want zone b and %t", got.Zone(), got.Available, tc.wantAvailable)
			}
			if !found["other"].Offerings[0].Available {
				t.Error("the offering of another MachineDeployment is not available")
			}
		})
	}
}

func TestObservedCapacityIsUsed(t *testing.T) {
	c, _ := newWorld(t, listed(m5large()))
	input := template("types")
	memory := func(want, wantAllocatable string) {
		t.Helper()
		got, err := c.InstanceTypes(t.Context(), input, began)
		if err != nil {
			t.Fatal(err)
		}
		capacity, allocatable := got[0].Capacity[corev1.ResourceMemory], got[0].Allocatable()[corev1.ResourceMemory]
		if capacity.String() != want || allocatable.String() != wantAllocatable {
			t.Errorf("got %s and %s allocatable, want %s and %s", capacity.String(), allocatable.String(), want, wantAllocatable)
		}
		if label := got[0].Requirements.Get(v1alpha1.InstanceMemoryLabel).Any(); label != "8192" {
			t.Errorf("the label that Nodes have already changes to %s", label)
		}
	}
	memory("8Gi", "8092Mi")
	input.Status.ObservedCapacity = []v1alpha1.ObservedCapacity{{
		InstanceType: "m5.large", Revision: RevisionOf(input), Nodes: 1,
		Capacity: corev1.ResourceList(list("memory", "7Gi")), Allocatable: corev1.ResourceList(list("memory", "6Gi")),
	}}
	memory("7Gi", "6Gi")
	input.Status.ObservedCapacity[0].Nodes = 0
	memory("8Gi", "8092Mi")
	input.Status.ObservedCapacity[0].Revision, input.Status.ObservedCapacity[0].Nodes = "v1-another", 2
	memory("8Gi", "8092Mi")
}

// Clusters have revisions stored. See TestHashesOfAFixedTemplate in package generate for what to do if this test fails.
func TestRevisionOfAFixedTemplate(t *testing.T) {
	fixed := &v1alpha1.KarpenterMachineTemplate{}
	fixed.Spec.Template.Spec.Version = "v1.36.3"
	fixed.Spec.Template.Spec.Bootstrap.DataSecretName = new("bootstrap")
	fixed.Spec.Kubelet = &v1alpha1.KubeletConfiguration{MaxPods: new(int32(58))}
	fixed.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure}}
	if got, want := RevisionOf(fixed), "v1-7a59e52b10b239812881b8d03e3c3219"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestIsRevision(t *testing.T) {
	for stored, want := range map[string]bool{"v1-a": true, "v1-b": false, "v0-b": true, "v2-b": true, "b": true, "": false} {
		if got := IsRevision(stored, "v1-a"); got != want {
			t.Errorf("%q: got %t, want %t", stored, got, want)
		}
	}
}

func TestRevision(t *testing.T) {
	before := template("types")
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplateSpec)
		same   bool
	}{
		"the version": {func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.Template.Spec.Version = "v1.36.4" }, false},
		"a patch":     {func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.Patches = []v1alpha1.Patch{{}} }, false},
		"kubelet": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Kubelet = &v1alpha1.KubeletConfiguration{MaxPods: new(int32(9))}
		}, false},
		"no types": {func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.CatalogRefs = nil }, true},
		"a time":   {func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.SpareTTLSeconds = new(int32(0)) }, true},
		"an annotation of MachineDeployments": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.ScalableResource.Annotations = map[string]string{"a": "b"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			tc.change(&after.Spec)
			if same := RevisionOf(before) == RevisionOf(after); same != tc.same {
				t.Errorf("same revision: %t, want %t", same, tc.same)
			}
		})
	}
}

// The status closes exactly the offerings that are at their limit.
func TestTheStatusClosesWhatIsFull(t *testing.T) {
	property.Check(t, 500, func(r *rapid.T) {
		few := rapid.Int32Range(0, 3)
		limit := func() *int32 {
			if !rapid.Bool().Draw(r, "limited") {
				return nil
			}
			return new(few.Draw(r, "limit"))
		}
		input, count := template("types"), few.Draw(r, "reserved")
		input.Spec.MaxMachines = limit()
		instanceType := m5large()
		offerings := &instanceType.Offerings
		for _, zone := range []v1alpha1.Zone{"a", "b"} {
			*offerings = append(*offerings, v1alpha1.Offering{Zones: []v1alpha1.Zone{zone}, CapacityType: "reserved", Price: "0", Reservation: &v1alpha1.Reservation{ID: "cr-1", Count: count}})
		}
		var keys []Key
		for i := range *offerings {
			o := &(*offerings)[i]
			if o.Reservation == nil {
				o.MaxMachines = limit()
			}
			keys = append(keys, Key{"m5.large", string(o.Zones[0]), string(o.CapacityType)})
		}
		taken := rapid.SliceOfN(rapid.SampledFrom(keys), 0, 5).Draw(r, "taken")
		catalog := listed(instanceType)
		types, _ := TypesOf(input, nil, catalog)
		usage := LimitsOf(input, types).Use(claims(taken...))
		input.Status.NodeClaims, input.Status.LimitedOfferings = usage.Total(), usage.Status()
		c, _ := newWorld(t, catalog)
		instanceTypes, err := c.InstanceTypes(t.Context(), input, began)
		if err != nil {
			r.Fatal(err)
		}
		for _, offering := range instanceTypes[0].Offerings {
			key := Key{"m5.large", offering.Zone(), offering.CapacityType()}
			if offering.Launchable() == usage.Full(key) {
				r.Fatalf("%s: launchable %t, full %t, with %v taken and %+v", key, offering.Launchable(), usage.Full(key), taken, input.Status.LimitedOfferings)
			}
		}
	})
}
