// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/inventory"
)

var hostPool = inventory.Pool{Source: inventory.Source{Kind: "BareMetalHost", Free: "true", Consumer: "''"}, Labels: "size=large"}

// countedLimits returns the limits of a template with an offering whose hosts are counted, and one without. Another template has
// the same hosts.
func countedLimits(free int64, machines ...clusterv1.Machine) Limits {
	limits := LimitsOf(template(), []Type{{Name: "m5", Offerings: []Offering{
		{Zone: "a", CapacityType: "on-demand", Pools: []inventory.Pool{hostPool}}, {Zone: "b", CapacityType: "on-demand"},
	}}})
	limits.counts = map[inventory.Pool]inventory.Count{hostPool: {Objects: 3, Free: free, Consumers: sets.New("consuming")}}
	limits.othersPools = map[string]map[Key][]inventory.Pool{limits.owner: limits.pools, "other": {limited: {hostPool}}}
	limits.addMachines(machines)
	return limits
}

func machineOf(name string, claim types.UID) clusterv1.Machine {
	labels := map[string]string{v1alpha1.TemplateLabel: template().Name, v1alpha1.InstanceTypeLabel: "m5", v1alpha1.ZoneLabel: "a", v1alpha1.CapacityTypeLabel: "on-demand"}
	if claim != "" {
		labels[v1alpha1.NodeClaimUIDLabel] = string(claim)
	}
	return clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// A limit that is counted closes its offering, and only that one. Machines are counted once.
func TestCountedLimits(t *testing.T) {
	two := claims(limited, limited)
	other := claims(limited)
	other[0].UID, other[0].Spec.NodeClassRef = "other", &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "other"}
	ending := claims(limited)
	ending[0].DeletionTimestamp = new(metav1.Now())
	for name, tc := range map[string]struct {
		free     int64
		machines []clusterv1.Machine
		claims   []karpv1.NodeClaim
		full     bool
		want     v1alpha1.LimitedOffering
	}{
		"free":                         {free: 3, want: v1alpha1.LimitedOffering{Limit: 3}},
		"none is free":                 {full: true, want: v1alpha1.LimitedOffering{Message: "3 of 3 BareMetalHosts with labels size=large are in use or unavailable"}},
		"claims that wait":             {free: 3, claims: two, want: v1alpha1.LimitedOffering{NodeClaims: 2, Limit: 3}},
		"claims for all":               {free: 2, claims: two, full: true, want: v1alpha1.LimitedOffering{NodeClaims: 2, Limit: 2, Message: "2 of 3 BareMetalHosts with labels size=large are free, for 2 machines that are being launched"}},
		"of another template":          {free: 2, claims: append(other, two[0]), full: true, want: v1alpha1.LimitedOffering{NodeClaims: 1, Limit: 1, Message: "2 of 3 BareMetalHosts with labels size=large are free, for 2 machines that are being launched"}},
		"with a host":                  {free: 2, claims: two, machines: []clusterv1.Machine{machineOf("consuming", two[0].UID)}, want: v1alpha1.LimitedOffering{NodeClaims: 2, Limit: 3}},
		"with a Machine, without host": {free: 2, claims: two, machines: []clusterv1.Machine{machineOf("m", two[0].UID)}, full: true, want: v1alpha1.LimitedOffering{NodeClaims: 2, Limit: 2, Message: "2 of 3 BareMetalHosts with labels size=large are free, for 2 machines that are being launched"}},
		"a claim that ends":            {free: 1, claims: ending, want: v1alpha1.LimitedOffering{NodeClaims: 1, Limit: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			usage := countedLimits(tc.free, tc.machines...).Use(tc.claims)
			if usage.Full(limited) != tc.full || usage.Full(unlimited) {
				t.Errorf("full: %t, and the offering that is not counted %t", usage.Full(limited), usage.Full(unlimited))
			}
			tc.want.InstanceType, tc.want.Zone, tc.want.CapacityType = limited.InstanceType, limited.Zone, limited.CapacityType
			if diff := cmp.Diff([]v1alpha1.LimitedOffering{tc.want}, usage.Status()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Of claims without a Machine, the youngest exceed what is free. Claims with a Machine never do, nor do those of MachinePools, whose
// Machines can be later than their instances.
func TestExceedingCounted(t *testing.T) {
	three := claims(limited, limited, limited)
	limits := countedLimits(1, machineOf("m", three[2].UID))
	if got := Exceeding(three, limits); !got.Equal(sets.New(three[0].UID, three[1].UID)) {
		t.Errorf("got %v: the one host is for the Machine", got)
	}
	if got := Exceeding(three, countedLimits(2)); !got.Equal(sets.New(three[2].UID)) {
		t.Errorf("got %v, want the youngest", got)
	}
	if got := Exceeding(three, countedLimits(0, machineOf("consuming", ""))); !got.Equal(sets.New(three[1].UID, three[2].UID)) {
		t.Errorf("got %v: the spare Machine serves the oldest", got)
	}
	limits.late = true
	if got := Exceeding(three, limits); got.Len() > 0 {
		t.Errorf("got %v of a MachinePool", got)
	}
}
