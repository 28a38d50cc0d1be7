// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// claimOf returns a NodeClaim that was launched from a cell's template.
func claimOf(name, instanceType, zone, capacityType string) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: "x"},
		Labels: map[string]string{"node.kubernetes.io/instance-type": instanceType, "topology.kubernetes.io/zone": zone, karpv1.CapacityTypeLabelKey: capacityType},
	}}
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}
	return claim
}

// The status counts the offerings that can be chosen now, in the write that closes others.
func TestAvailable(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*v1alpha1.KarpenterMachineTemplate, time.Time)
		limit   *int32 // of the first offering
		objects []client.Object
		want    int32
	}{
		"all": {want: 3},
		"none that is unavailable": {want: 2, change: func(t *v1alpha1.KarpenterMachineTemplate, now time.Time) {
			t.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{
				{InstanceType: "m5", Zone: "a", CapacityType: "on-demand", Until: metav1.NewTime(now.Add(time.Minute))},
				{InstanceType: "m5", Zone: "b", CapacityType: "on-demand", Until: metav1.NewTime(now.Add(-time.Minute))},
			}
		}},
		"none that is invalid": {want: 2, change: func(t *v1alpha1.KarpenterMachineTemplate, _ time.Time) {
			t.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure, EnabledIf: `{{ eq .zone "b" }}`, JSONPatches: []v1alpha1.JSONPatch{{Op: "remove", Path: "/spec/missing"}}}}
		}},
		"none at its limit":                 {want: 2, objects: []client.Object{claimOf("x", "m5", "a", "on-demand")}, limit: new(int32(1))},
		"none whose reservation is used up": {want: 2, objects: []client.Object{claimOf("x", "m5", "c", "reserved")}},
		"none of a template at its limit": {want: 0, objects: []client.Object{claimOf("x", "m5", "a", "on-demand")}, change: func(t *v1alpha1.KarpenterMachineTemplate, _ time.Time) {
			t.Spec.MaxMachines = new(int32(1))
		}},
		"none that is paused": {want: 2, objects: []client.Object{&clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: "paused", Annotations: map[string]string{clusterv1.PausedAnnotation: ""},
			Labels: map[string]string{
				v1alpha1.TemplateLabel: "general", v1alpha1.InstanceTypeLabel: "m5", v1alpha1.ZoneLabel: "a", v1alpha1.CapacityTypeLabel: "on-demand",
			},
		}}}},
		"not those that only NodeClaims have": {want: 3, objects: []client.Object{claimOf("x", "old", "a", "on-demand")}},
	} {
		t.Run(name, func(t *testing.T) {
			template, listed := newTemplate(), newCatalog()
			offerings := &listed.Spec.InstanceTypes[0].Offerings
			(*offerings)[0].MaxMachines = tc.limit
			*offerings = append(*offerings,
				v1alpha1.Offering{Zones: []v1alpha1.Zone{"b"}, CapacityType: "on-demand", Price: "1"},
				v1alpha1.Offering{Zones: []v1alpha1.Zone{"c"}, CapacityType: "reserved", Price: "0", Reservation: &v1alpha1.Reservation{ID: "r", Count: 1}})
			if tc.change != nil {
				tc.change(template, began)
			}
			stored, err := newCell(append(tc.objects, template, listed)...).reconcile(t, "general")
			if err != nil || stored.Status.Offerings != 3 || stored.Status.AvailableOfferings != tc.want {
				t.Errorf("got %d of %d and %v, want %d of 3", stored.Status.AvailableOfferings, stored.Status.Offerings, err, tc.want)
			}
		})
	}
}

// When an offering can be chosen again, one write shows that, and no further write follows.
func TestAvailabilityCausesNoFurtherWrites(t *testing.T) {
	template := newTemplate()
	template.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{
		InstanceType: "m5", Zone: "a", CapacityType: "on-demand", Reason: "LaunchTimeout", Failures: 1, Until: metav1.NewTime(began.Add(time.Minute)),
	}}
	c := newCell(template)
	reconciled := func(want int32, wantWrites int) {
		t.Helper()
		writes := 0
		for range 3 {
			c.fails = func(verb string, _ any, _ string) error {
				if verb == "patch" {
					writes++
				}
				return nil
			}
			stored, err := c.reconcile(t, "general")
			if err != nil || stored.Status.AvailableOfferings != want {
				t.Errorf("after %s: got %d and %v, want %d", c.clock.Since(began), stored.Status.AvailableOfferings, err, want)
			}
		}
		if writes != wantWrites {
			t.Errorf("after %s: %d writes, want %d", c.clock.Since(began), writes, wantWrites)
		}
	}
	reconciled(0, 1)
	c.clock.Step(30 * time.Second)
	reconciled(0, 0)
	c.clock.Step(30 * time.Second)
	reconciled(1, 1)
	c.clock.Step(29 * time.Minute)
	reconciled(1, 0)
	c.clock.Step(time.Minute)
	reconciled(1, 1) // the failure no longer counts
}
