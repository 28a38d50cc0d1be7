// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// Which of the selected MachineDeployments are offered depends on who created them and who sets their replicas.
func TestSelectedMachineDeployments(t *testing.T) {
	generated := func(d *clusterv1.MachineDeployment) { d.Labels = map[string]string{v1alpha1.TemplateLabel: "general"} }
	adopted := func(d *clusterv1.MachineDeployment) {
		generated(d)
		d.Annotations[v1alpha1.AdoptedAnnotation] = "2026-01-01T00:00:00Z"
	}
	inTopology := func(d *clusterv1.MachineDeployment) {
		metav1.SetMetaDataLabel(&d.ObjectMeta, clusterv1.ClusterTopologyOwnedLabel, "")
		metav1.SetMetaDataLabel(&d.ObjectMeta, clusterv1.ClusterTopologyMachineDeploymentNameLabel, "md-0")
	}
	without := func(d *clusterv1.MachineDeployment) { delete(d.Annotations, v1alpha1.AdoptableAnnotation) }
	const refused = "MachineDeployment fleet/md: templates may not use it"
	const contested = "MachineDeployment fleet/md: spec.topology of Cluster fleet/served sets its replicas"
	for name, tc := range map[string]struct {
		change  []func(*clusterv1.MachineDeployment)
		bases   []tenancy.BaseTemplate
		offered bool
		paused  bool
		problem string // a part of it
	}{
		"a user's":  {offered: true},
		"generated": {change: []func(*clusterv1.MachineDeployment){generated}},
		"adopted":   {change: []func(*clusterv1.MachineDeployment){adopted}, offered: true},
		"being deleted": {change: []func(*clusterv1.MachineDeployment){func(d *clusterv1.MachineDeployment) {
			d.Finalizers, d.DeletionTimestamp = []string{"x/y"}, new(metav1.Now())
		}}},
		"without consent":                              {change: []func(*clusterv1.MachineDeployment){without}, problem: refused},
		"adopted, and the consent was removed":         {change: []func(*clusterv1.MachineDeployment){adopted, without}, problem: refused},
		"generated, without consent":                   {change: []func(*clusterv1.MachineDeployment){generated, without}},
		"its base template may be used":                {bases: []tenancy.BaseTemplate{{Kind: "AWSMachineTemplate", Name: "miss*"}}, offered: true},
		"its base template may not be used":            {bases: []tenancy.BaseTemplate{{Kind: "AWSMachineTemplate", Name: "other"}}, problem: "MachineDeployment fleet/md: AWSMachineTemplate missing is not among the base templates"},
		"of another namespace":                         {change: []func(*clusterv1.MachineDeployment){func(d *clusterv1.MachineDeployment) { d.Namespace = "other" }}},
		"paused":                                       {change: []func(*clusterv1.MachineDeployment){func(d *clusterv1.MachineDeployment) { d.Spec.Paused = new(true) }}, offered: true, paused: true},
		"paused by its annotation":                     {change: []func(*clusterv1.MachineDeployment){func(d *clusterv1.MachineDeployment) { d.Annotations[clusterv1.PausedAnnotation] = "" }}, offered: true, paused: true},
		"a topology sets its replicas":                 {change: []func(*clusterv1.MachineDeployment){inTopology}, problem: contested},
		"adopted before a topology did":                {change: []func(*clusterv1.MachineDeployment){adopted, inTopology}, offered: true, paused: true, problem: contested},
		"without capacity":                             {change: []func(*clusterv1.MachineDeployment){func(d *clusterv1.MachineDeployment) { delete(d.Annotations, cpuAnnotation) }}, problem: "MachineDeployment fleet/md: expected cpu in the status.capacity"},
		"less memory than the kubelet keeps":           {change: []func(*clusterv1.MachineDeployment){func(d *clusterv1.MachineDeployment) { d.Annotations[memoryAnnotation] = "64Mi" }}, problem: "MachineDeployment fleet/md: kubelet reserves more memory"},
		"adopted, in a topology, and without capacity": {change: []func(*clusterv1.MachineDeployment){adopted, inTopology, func(d *clusterv1.MachineDeployment) { delete(d.Annotations, cpuAnnotation) }}, problem: contested},
	} {
		t.Run(name, func(t *testing.T) {
			md := machineDeployment("md", map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi"})
			for _, change := range tc.change {
				change(md)
			}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "served"}}
			cluster.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Name: "md-0", Replicas: new(int32(2))}}
			c, _ := newWorld(t, cluster, md)
			c.clusters.Allowed.BaseTemplates = tc.bases
			input := known(template(), 1)
			input.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
			types, problems, err := c.Types(t.Context(), input)
			if err != nil {
				t.Fatal(err)
			}
			if offered := len(types) == 1; offered != tc.offered || offered && types[0].Offerings[0].Paused != tc.paused {
				t.Errorf("got %+v, want that it is offered: %t, paused: %t", types, tc.offered, tc.paused)
			}
			instanceTypes, err := c.InstanceTypes(t.Context(), input, began)
			if err != nil {
				t.Fatal(err)
			}
			for _, instanceType := range instanceTypes {
				if available := instanceType.Offerings[0].Available; available == tc.paused {
					t.Errorf("the offering is available: %t, paused: %t", available, tc.paused)
				}
			}
			for _, problem := range problems {
				want := v1alpha1.ReasonInstanceTypesInvalid
				switch {
				case tc.problem == contested:
					want = v1alpha1.ReasonScalableResourceUnusable
				case tc.problem == refused:
					want = v1alpha1.ReasonAdoptionNotAllowed
				case tc.bases != nil:
					want = v1alpha1.ReasonBaseTemplateNotAllowed
				}
				if problem.Reason != want {
					t.Errorf("got reason %s, want %s", problem.Reason, want)
				}
			}
			if len(problems) > 1 || (len(problems) == 1) != (tc.problem != "") || tc.problem != "" && !strings.HasPrefix(problems[0].Message, tc.problem) {
				t.Errorf("got problems %v, want %q", problems, tc.problem)
			}
		})
	}
}

// What is wrong with the discovery itself is a problem, and costs the other sources nothing. A wrong selector selects
// nothing, because MachineDeployments that it does not mean would be adopted.
func TestWrongDiscovery(t *testing.T) {
	bad := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplateSpec)
		want   []string
	}{
		"selectors": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{Selector: bad},
				InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Selector: bad}}
		}, []string{"spec.discovery.infrastructureTemplates.selector: ", "spec.discovery.machineDeployments.selector: "}},
		"prices": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			none := metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			s.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{Selector: none}, Pricing: &v1alpha1.Pricing{CPU: "cheap"}}
		}, []string{"spec.discovery: pricing.cpu: "}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newWorld(t, awsMachineTemplates(), infrastructureTemplate("large", nil), machineDeployment("md", map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi"}))
			input := known(template(), 1)
			tc.change(&input.Spec)
			types, problems, err := c.Types(t.Context(), input)
			if err != nil {
				t.Fatal(err)
			}
			if len(types) > 0 || len(problems) != len(tc.want) {
				t.Errorf("got %d types and problems %v, want none and %d", len(types), problems, len(tc.want))
			}
			for _, want := range tc.want {
				if !slices.ContainsFunc(problems, func(p Problem) bool {
					return p.Reason == v1alpha1.ReasonInstanceTypesInvalid && strings.HasPrefix(p.Message, want)
				}) {
					t.Errorf("got %v, want %s", problems, want)
				}
			}
		})
	}
}

// Each kind of discovery is there without the other one, and reports the kind whose objects change what it finds.
func TestKindsThatDiscoveryNeeds(t *testing.T) {
	existing := machineDeployment("md", map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi"})
	existing.Spec.Template.Spec.InfrastructureRef.Name = "large"
	for name, tc := range map[string]struct {
		discovery v1alpha1.Discovery
		want      string
		wantKinds int
	}{
		"infrastructure templates": {v1alpha1.Discovery{InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate"}}, "large", 1},
		"MachineDeployments":       {v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}, "md", 1},
		"nothing":                  {v1alpha1.Discovery{}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newWorld(t, awsMachineTemplates(), infrastructureTemplate("large", nil), existing.DeepCopy())
			input := known(template(), 1)
			input.Spec.Discovery = &tc.discovery
			kinds, err := c.Refresh(t.Context(), input)
			if err != nil || len(kinds) != tc.wantKinds || len(kinds) > 0 && kinds[0].Kind != "AWSMachineTemplate" {
				t.Errorf("got kinds %v and %v", kinds, err)
			}
			types, problems, err := c.Types(t.Context(), input)
			if err != nil {
				t.Fatal(err)
			}
			if names := strings.Join(lo.Map(types, func(t Type, _ int) string { return t.Name }), " "); names != tc.want || len(problems) > 0 {
				t.Errorf("got the types %q and problems %v, want %q", names, problems, tc.want)
			}
		})
	}
}

// Discovered objects have the prices of spec.discovery.pricing, and others if it only has factors or is not set.
func TestPricesOfDiscovered(t *testing.T) {
	half := []v1alpha1.PriceFactor{{CapacityType: "spot", Factor: "0.5"}}
	for name, tc := range map[string]struct {
		pricing *v1alpha1.Pricing
		want    float64
	}{
		"no prices":          {nil, 2*0.03 + 8*0.004},
		"factors":            {&v1alpha1.Pricing{Factors: half}, 0.5 * (2*0.03 + 8*0.004)},
		"prices":             {&v1alpha1.Pricing{CPU: "1", Memory: "0.125"}, 3},
		"prices and factors": {&v1alpha1.Pricing{CPU: "1", Factors: half}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newWorld(t, machineDeployment("md", map[string]string{cpuAnnotation: "2", memoryAnnotation: "8Gi", v1alpha1.DiscoveredCapacityTypeAnnotation: "spot"}))
			input := known(template(), 1)
			input.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}, Pricing: tc.pricing}
			_, offering, err := c.Find(t.Context(), input, Key{"md", "", "spot"})
			if err != nil {
				t.Fatal(err)
			}
			if got := offering.Price; got < tc.want-1e-9 || got > tc.want+1e-9 {
				t.Errorf("got the price %v, want %v", got, tc.want)
			}
		})
	}
}

// A reserved offering that only NodeClaims still have counts with the other offerings of its reservation, and
// has none left of its own.
func TestReservationInUse(t *testing.T) {
	types := []Type{{Name: "m5", Offerings: []Offering{{Zone: "a", CapacityType: "spot"}, {Zone: "a", CapacityType: "reserved", Reservation: &v1alpha1.Reservation{ID: "cr-1", Count: 8}}}}}
	for name, tc := range map[string]struct {
		id   string
		want *v1alpha1.Reservation
	}{
		"none":                    {"", nil},
		"one that still exists":   {"cr-1", &v1alpha1.Reservation{ID: "cr-1", Count: 8}},
		"one that does not exist": {"cr-2", &v1alpha1.Reservation{ID: "cr-2"}},
		"one with a similar name": {"cr-", &v1alpha1.Reservation{ID: "cr-"}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := nodeClaim("a", Key{"gone", "b", "reserved"})
			if tc.id != "" {
				claim.Labels[v1alpha1.ReservationIDLabel] = tc.id
			}
			listed := withUsed(types, usedBy(claimsOf(claim)))
			if len(listed) != 2 || !listed[1].Offerings[0].Retired {
				t.Fatalf("got %+v", listed)
			}
			if diff := cmp.Diff(tc.want, listed[1].Offerings[0].Reservation); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The offerings in use do not depend on the order of the NodeClaims, so that nothing seems to change.
func TestOfferingsInUseAreInOrder(t *testing.T) {
	want := []Key{{"c", "z", "spot"}, {"m", "a", "spot"}, {"m", "b", "on-demand"}, {"m", "b", "spot"}}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}} {
		given := lo.Map(order, func(at, i int) karpv1.NodeClaim { return *nodeClaim(string(rune('a'+i)), want[at]) })
		if diff := cmp.Diff(want, lo.Map(usedBy(given), func(u used, _ int) Key { return u.Key })); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Of several NodeClaims of an offering that no source has any more, the oldest decides. Without a recorded price, the
// price follows from the capacity.
func TestPriceOfAnOfferingInUse(t *testing.T) {
	key := Key{"gone", "b", "spot"}
	oldest, younger := nodeClaim("z", key), nodeClaim("a", key)
	younger.CreationTimestamp = metav1.Unix(100, 0)
	oldest.CreationTimestamp = metav1.Unix(50, 0)
	younger.Annotations[v1alpha1.PriceAnnotation] = "0.9"
	if got := usedBy(claimsOf(younger, oldest)); len(got) != 1 || got[0].Price != 0.7 {
		t.Errorf("got %+v, want the price 0.7 of the oldest", got)
	}
	delete(oldest.Annotations, v1alpha1.PriceAnnotation)
	if got := usedBy(claimsOf(younger, oldest)); len(got) != 1 || got[0].Price != 4*0.03+16*0.004 {
		t.Errorf("got %+v, want the price of 4 CPUs and 16 GiB", got)
	}
	waiting := nodeClaim("w", Key{"waiting", "b", "spot"})
	delete(waiting.Annotations, v1alpha1.ScalableResourceAnnotation)
	if got := usedBy(claimsOf(waiting)); len(got) != 0 {
		t.Errorf("got %+v of a NodeClaim that was not launched", got)
	}
}

func claimsOf(claims ...*karpv1.NodeClaim) []karpv1.NodeClaim {
	return lo.Map(claims, func(claim *karpv1.NodeClaim, _ int) karpv1.NodeClaim { return *claim })
}
