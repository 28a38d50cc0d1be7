// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A Machine that is created within the second of the adoption, or by an API server whose
// clock is behind, does not count as unmanaged.
func TestAdoptHasTheTimeOfTheYoungestMachine(t *testing.T) {
	at := func(second int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC))
	}
	machine := func(second int) clusterv1.Machine {
		return clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(second)}}
	}
	resource := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "existing", CreationTimestamp: at(1), Labels: map[string]string{"a": "b"}}}
	resource.Spec.Replicas, resource.Annotations = new(int32(3)), map[string]string{"mine": "x"}
	for name, tc := range map[string]struct {
		machines []clusterv1.Machine
		want     int
	}{
		"no Machines": {nil, 1},
		"Machines":    {[]clusterv1.Machine{machine(20), machine(30), machine(10)}, 30},
	} {
		t.Run(name, func(t *testing.T) {
			adopted := Adopt(resource, tc.machines, "general", fixture.Spot)
			if when, own := Adoption(New(adopted)); !when.Equal(at(tc.want).Time) || own != 3 {
				t.Errorf("got %s and %d unmanaged replicas", when, own)
			}
			if OfferingOf(adopted) != fixture.Spot || adopted.Labels[v1alpha1.TemplateLabel] != "general" || !Adopted(adopted) {
				t.Errorf("got labels %v, annotations %v", adopted.Labels, adopted.Annotations)
			}
			adopted.Annotations[v1alpha1.EmptySinceAnnotation], adopted.Annotations[v1alpha1.ReplicasLoweredAtAnnotation] = "x", "x"
			before := EndAdoption(New(adopted))
			if Adopted(before) || !maps.Equal(before.GetLabels(), resource.Labels) || !maps.Equal(before.GetAnnotations(), resource.Annotations) {
				t.Errorf("after the adoption it has labels %v, annotations %v", before.GetLabels(), before.GetAnnotations())
			}
		})
	}
	for text, want := range map[string]int32{"0": 0, "2": 2, "": 3, "-1": 3, "many": 3} {
		adopted := Adopt(resource, nil, "general", fixture.Spot)
		adopted.Annotations[v1alpha1.UnmanagedReplicasAnnotation] = text
		if _, own := Adoption(New(adopted)); own != want {
			t.Errorf("with %q in the annotation: got %d unmanaged replicas, want %d", text, own, want)
		}
	}
	if when, own := Adoption(New(resource)); !when.IsZero() || own != 0 {
		t.Errorf("not adopted: got %s and %d unmanaged replicas", when, own)
	}
	resource.Annotations = map[string]string{v1alpha1.AdoptedAnnotation: "spoiled"}
	if when, own := Adoption(New(resource)); when.Before(at(59).Time) || own != 3 {
		t.Errorf("spoiled: got %s and %d unmanaged replicas, want all to be unmanaged", when, own)
	}
}
