// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// instanceTypes returns two sizes in two zones. The large one is cheaper as spot than
// the small one on demand, and zone b has no large spot.
func instanceTypes(t *testing.T) []*cloudprovider.InstanceType {
	t.Helper()
	capacity := func(cpu, memory string) map[corev1.ResourceName]resource.Quantity {
		return map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	template := &v1alpha1.KarpenterMachineTemplate{}
	template.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{Name: "workers"}
	listed := fixture.CatalogOf(
		v1alpha1.InstanceType{Name: "small", Capacity: capacity("2", "4Gi"), Labels: map[string]v1alpha1.LabelValue{"topology.kubernetes.io/region": "r"}, Offerings: []v1alpha1.Offering{
			{Zones: []v1alpha1.Zone{"a"}, CapacityType: "on-demand", Price: "0.20"}, {Zones: []v1alpha1.Zone{"b"}, CapacityType: "on-demand", Price: "0.20"},
			{Zones: []v1alpha1.Zone{"a"}, CapacityType: "spot", Price: "0.05"}, {Zones: []v1alpha1.Zone{"b"}, CapacityType: "spot", Price: "0.04"},
		}},
		v1alpha1.InstanceType{Name: "large", Capacity: capacity("8", "16Gi"), Offerings: []v1alpha1.Offering{
			{Zones: []v1alpha1.Zone{"a"}, CapacityType: "on-demand", Price: "0.80"}, {Zones: []v1alpha1.Zone{"b"}, CapacityType: "on-demand", Price: "0.80"},
			{Zones: []v1alpha1.Zone{"a"}, CapacityType: "spot", Price: "0.16"},
		}},
	)
	types, problems := catalog.TypesOf(template, nil, listed)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	built, _ := catalog.Build(template, types)
	slices.Reverse(built) // small is the first one
	return built
}

// decided returns a claim that has the labels of an offering of the type "large", from an earlier decision.
func decided(inZone, ofCapacityType string) *karpv1.NodeClaim {
	c := claim("1", "1Gi")
	c.Labels = map[string]string{typeLabel: "large", zone: inZone, capacityType: ofCapacityType}
	return c
}

// claim returns a claim that requests resources and requires labels with one of the given values.
func claim(cpu, memory string, requirements ...string) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "pool-x", UID: "1234"}}
	c.Spec.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "pods": resource.MustParse("3")}
	for _, requirement := range requirements {
		key, values, _ := strings.Cut(requirement, "=")
		c.Spec.Requirements = append(c.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: strings.Split(values, ",")})
	}
	return c
}

const (
	zone         = corev1.LabelTopologyZone
	capacityType = karpv1.CapacityTypeLabelKey
	typeLabel    = corev1.LabelInstanceTypeStable
)

// chooseOffering returns what a claim is launched with, without spec.spread.
func chooseOffering(claim *karpv1.NodeClaim, instanceTypes []*cloudprovider.InstanceType) (*decision, error) {
	cheapest, err := cheapestOfferings(claim, instanceTypes, func(catalog.Key) bool { return false })
	if err != nil {
		return nil, err
	}
	return cheapest[0], nil
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		claim     *karpv1.NodeClaim
		change    func([]*cloudprovider.InstanceType)
		want      catalog.Key
		wantError []string
	}{
		"the cheapest":                 {claim: claim("1", "1Gi"), want: catalog.Key{InstanceType: "small", Zone: "b", CapacityType: "spot"}},
		"in a zone":                    {claim: claim("1", "1Gi", zone+"=a"), want: catalog.Key{InstanceType: "small", Zone: "a", CapacityType: "spot"}},
		"a larger one if it is needed": {claim: claim("4", "1Gi"), want: catalog.Key{InstanceType: "large", Zone: "a", CapacityType: "spot"}},
		"on demand; of equal prices the first zone": {claim: claim("1", "1Gi", capacityType+"=on-demand"), want: catalog.Key{InstanceType: "small", Zone: "a", CapacityType: "on-demand"}},
		"on demand, in the first zone, also if it is listed last": {
			claim:  claim("1", "1Gi", capacityType+"=on-demand"),
			change: func(types []*cloudprovider.InstanceType) { slices.Reverse(types[0].Offerings) },
			want:   catalog.Key{InstanceType: "small", Zone: "a", CapacityType: "on-demand"},
		},
		"of the types that are allowed": {claim: claim("1", "1Gi", typeLabel+"=large"), want: catalog.Key{InstanceType: "large", Zone: "a", CapacityType: "spot"}},
		"none that is unavailable": {
			claim:  claim("1", "1Gi"),
			change: func(types []*cloudprovider.InstanceType) { types[0].Offerings[3].Available = false },
			want:   catalog.Key{InstanceType: "small", Zone: "a", CapacityType: "spot"},
		},
		"one with a label that the claim does not mention": {
			claim: claim("4", "1Gi"),
			change: func(types []*cloudprovider.InstanceType) {
				types[1].Requirements.Add(scheduling.NewRequirement("example.com/disk", corev1.NodeSelectorOpIn, "ssd"))
			},
			want: catalog.Key{InstanceType: "large", Zone: "a", CapacityType: "spot"},
		},
		"one with the label that the claim asks for": {
			claim: claim("1", "1Gi", "example.com/disk=ssd"),
			change: func(types []*cloudprovider.InstanceType) {
				types[0].Requirements.Add(scheduling.NewRequirement("example.com/disk", corev1.NodeSelectorOpDoesNotExist))
				types[1].Requirements.Add(scheduling.NewRequirement("example.com/disk", corev1.NodeSelectorOpIn, "ssd"))
			},
			want: catalog.Key{InstanceType: "large", Zone: "a", CapacityType: "spot"},
		},
		"one that fits exactly": {claim: claim("2", "3996Mi"), want: catalog.Key{InstanceType: "small", Zone: "b", CapacityType: "spot"}},
		"of equal prices the first type by name": {
			claim: claim("1", "1Gi", capacityType+"=on-demand"),
			change: func(types []*cloudprovider.InstanceType) {
				for _, offering := range types[1].Offerings {
					offering.Price = 0.2
				}
			},
			want: catalog.Key{InstanceType: "large", Zone: "a", CapacityType: "on-demand"},
		},
		"of equal prices in one zone the first capacity type": {
			claim: claim("1", "1Gi", typeLabel+"=large", zone+"=a"),
			change: func(types []*cloudprovider.InstanceType) {
				types[1].Offerings[0].Price = 0.16
				slices.Reverse(types[1].Offerings)
			},
			want: catalog.Key{InstanceType: "large", Zone: "a", CapacityType: "on-demand"},
		},
		"an earlier decision is kept": {
			claim: decided("b", "on-demand"),
			want:  catalog.Key{InstanceType: "large", Zone: "b", CapacityType: "on-demand"},
		},
		"an earlier decision for on demand is kept": {
			claim: decided("a", "on-demand"),
			want:  catalog.Key{InstanceType: "large", Zone: "a", CapacityType: "on-demand"},
		},

		"too little memory anywhere": {
			claim:     claim("1", "64Gi"),
			wantError: []string{"none of 2 instance types fits NodeClaim pool-x", "the closest is large, which has too little memory: requested 64Gi, allocatable 16284Mi"},
		},
		"the closest lacks least": {
			claim:     claim("1", "20Gi"),
			change:    func(types []*cloudprovider.InstanceType) { slices.Reverse(types) },
			wantError: []string{"the closest is large, which has too little memory"},
		},
		"the closest is not one that the claim does not allow": {
			claim:     claim("1", "64Gi", typeLabel+"=small"),
			wantError: []string{"the closest is small, which has too little memory"},
		},
		"the closest is not one without the resource": {
			claim: func() *karpv1.NodeClaim {
				c := claim("1", "1Gi")
				c.Spec.Resources.Requests["example.com/gpu"] = resource.MustParse("8")
				return c
			}(),
			change: func(types []*cloudprovider.InstanceType) {
				types[1].Capacity["example.com/gpu"] = resource.MustParse("1")
			},
			wantError: []string{"the closest is large, which has too little example.com/gpu: requested 8, allocatable 1"},
		},
		"the closest is the one that fails last": {
			claim:     claim("4", "1Gi", zone+"=b", capacityType+"=spot"),
			wantError: []string{"the closest is large, which has no offering with zone topology.kubernetes.io/zone In [b] and capacity type karpenter.sh/capacity-type In [spot]"},
		},
		"an architecture that does not exist": {
			claim:     claim("1", "1Gi", corev1.LabelArchStable+"=arm64"),
			wantError: []string{"does not meet the requirements", "kubernetes.io/arch", "arm64"},
		},
		"an instance type that does not exist": {
			claim:     claim("1", "1Gi", typeLabel+"=huge"),
			wantError: []string{"the closest is small, which the claim does not allow", "huge"},
		},
		"all unavailable": {
			claim:     claim("4", "1Gi", capacityType+"=spot"),
			change:    func(types []*cloudprovider.InstanceType) { types[1].Offerings[2].Available = false },
			wantError: []string{"the closest is large, whose offerings are all unavailable"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			types := instanceTypes(t)
			if tc.change != nil {
				tc.change(types)
			}
			got, err := chooseOffering(tc.claim, types)
			if tc.wantError != nil {
				if err == nil {
					t.Fatalf("got %s, want an error", got.key())
				}
				for _, want := range tc.wantError {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("got %q, want it to contain %q", err, want)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.key() != tc.want {
				t.Errorf("got %s, want %s", got.key(), tc.want)
			}
		})
	}
	if _, err := chooseOffering(claim("1", "1Gi"), nil); err == nil || !strings.Contains(err.Error(), "offers no instance types") {
		t.Errorf("got %v for a template without instance types", err)
	}
}

func TestTheClaimCarriesAllThatIsDecided(t *testing.T) {
	input := claim("1", "1Gi", zone+"=a,b", "example.com/team=a,b")
	input.Annotations = map[string]string{"kept": "yes"}
	input.Spec.Requirements = append(input.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: "example.com/not", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"a"}})
	types := instanceTypes(t)
	types[0].Capacity["example.com/gpu"] = resource.MustParse("0")
	decision, err := chooseOffering(input, types)
	if err != nil {
		t.Fatal(err)
	}
	got := decision.nodeClaim(input)
	for key, want := range map[string]string{
		typeLabel: "small", zone: "b", capacityType: "spot",
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelTopologyRegion: "r",
	} {
		if got.Labels[key] != want {
			t.Errorf("label %s: got %q, want %q", key, got.Labels[key], want)
		}
	}
	for _, key := range []string{corev1.LabelWindowsBuild, "example.com/team", "example.com/not"} {
		if value, there := got.Labels[key]; there {
			t.Errorf("the claim has label %s=%s, which is not decided", key, value)
		}
	}
	if _, there := got.Status.Capacity["example.com/gpu"]; there {
		t.Error("the claim has a resource that its Node lacks")
	}
	if got.Annotations["kept"] != "yes" || got.Name != "pool-x" {
		t.Errorf("the claim's own metadata is lost: %+v", got.ObjectMeta)
	}
	if got.Status.ProviderID != "nodeclaim://1234" {
		t.Errorf("got provider ID %s, want the provisional one of this claim", got.Status.ProviderID)
	}
	if cpu := got.Status.Capacity["cpu"]; cpu.String() != "2" || got.Status.Allocatable.Memory().Cmp(resource.MustParse("3996Mi")) != 0 {
		t.Errorf("got capacity %v and allocatable %v", got.Status.Capacity, got.Status.Allocatable)
	}
	input.Annotations["kept"] = "changed"
	if got.Annotations["kept"] != "yes" {
		t.Error("the claim that is returned shares memory with the one that was given")
	}
}
