// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// How many volumes can be attached is learned from most Nodes, as capacity is. A driver that is not declared counts, too.
func TestVolumesAreLearned(t *testing.T) {
	type limits = map[string]int32
	of := func(volumes limits) report {
		r := m5("8Gi", "7Gi")
		r.volumes = volumes
		return r
	}
	declared := func(volumes map[string]int) func(string) *cloudprovider.InstanceType {
		return func(name string) *cloudprovider.InstanceType {
			it := declaredM5(name)
			it.VolumeAttachmentLimits = volumes
			return it
		}
	}
	ebs, efs := "ebs.csi.aws.com", "efs.csi.aws.com"
	for name, tc := range map[string]struct {
		declared map[string]int
		stored   limits
		reports  []report
		want     limits // nil if nothing is learned
	}{
		"no driver":                           {reports: []report{of(nil)}},
		"a driver that is not declared":       {reports: []report{of(limits{ebs: 26})}, want: limits{ebs: 26}},
		"what is declared is not stored":      {declared: map[string]int{ebs: 26}, reports: []report{of(limits{ebs: 26})}},
		"another number":                      {declared: map[string]int{ebs: 26}, reports: []report{of(limits{ebs: 24})}, want: limits{ebs: 24}},
		"two drivers":                         {declared: map[string]int{ebs: 26}, reports: []report{of(limits{ebs: 26, efs: 4})}, want: limits{ebs: 26, efs: 4}},
		"the least of two":                    {reports: []report{of(limits{ebs: 26}), of(limits{ebs: 25})}, want: limits{ebs: 25}},
		"but not one of five":                 {reports: append(slices.Repeat([]report{of(limits{ebs: 26})}, 4), of(limits{ebs: 3})), want: limits{ebs: 26}},
		"a Node on which it does not run yet": {reports: []report{of(limits{ebs: 26}), of(nil)}, want: limits{ebs: 26}},
		"a driver that reports 0":             {reports: []report{of(limits{ebs: 0})}},
		"it stays without Nodes":              {stored: limits{ebs: 26}, want: limits{ebs: 26}},
		"a driver that was removed":           {stored: limits{ebs: 26}, reports: []report{of(limits{efs: 4})}, want: limits{efs: 4}},
		"a number that was corrected":         {stored: limits{ebs: 26}, reports: []report{of(limits{ebs: 24})}, want: limits{ebs: 24}},
	} {
		t.Run(name, func(t *testing.T) {
			var stored []v1alpha1.ObservedCapacity
			if tc.stored != nil {
				stored = []v1alpha1.ObservedCapacity{observed(2, "r", "8Gi", "7Gi")}
				stored[0].VolumeAttachmentLimits = tc.stored
			}
			learned := learn(stored, tc.reports, declared(tc.declared), "r")
			got := lo.FirstOrEmpty(learned)
			if diff := cmp.Diff(tc.want, got.VolumeAttachmentLimits); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(learned, learn(learned, tc.reports, declared(tc.declared), "r")); diff != "" {
				t.Errorf("it is not stable:\n%s", diff)
			}
		})
	}
}

// Only a declared number is wrong if Nodes report another one.
func TestWrongVolumes(t *testing.T) {
	o := observed(1, "r", "8Gi", "7Gi")
	o.VolumeAttachmentLimits = map[string]int32{"ebs.csi.aws.com": 24, "efs.csi.aws.com": 4, "x.example.com": 1}
	got := inaccuracies([]v1alpha1.ObservedCapacity{o}, func(name string) *cloudprovider.InstanceType {
		it := declaredM5(name)
		it.VolumeAttachmentLimits = map[string]int{"ebs.csi.aws.com": 26, "efs.csi.aws.com": 4}
		return it
	})
	if diff := cmp.Diff([]string{"volumes of ebs.csi.aws.com of m5: declared 26, observed 24"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What the CSINode of a Node reports is stored, and no condition becomes False for what was not declared.
func TestVolumesOfACSINode(t *testing.T) {
	template := newTemplate()
	claim, node := reportingNode(template, "8Gi", "8Gi")
	csiNode := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	csiNode.Spec.Drivers = []storagev1.CSINodeDriver{
		{Name: "ebs.csi.aws.com", NodeID: "i-1", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(24))}},
		{Name: "efs.csi.aws.com", NodeID: "i-1"}, // without a limit
		{Name: "x.example.com", NodeID: "i-1", Allocatable: &storagev1.VolumeNodeResources{}},
	}
	stored, err := newCell(template, claim, node, csiNode).reconcile(t, "general")
	if err != nil {
		t.Fatal(err)
	}
	learned := lo.FirstOrEmpty(stored.Status.ObservedCapacity)
	if diff := cmp.Diff(map[string]int32{"ebs.csi.aws.com": 24}, learned.VolumeAttachmentLimits); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if condition := stored.StatusConditions().Get(v1alpha1.ConditionCapacityAccurate); !condition.IsTrue() {
		t.Errorf("got %+v, want True", condition)
	}
}
