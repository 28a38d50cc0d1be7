// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// declaredM5 is m5 with 2 CPUs and 8Gi, of which 1Gi is reserved.
func declaredM5(name string) *cloudprovider.InstanceType {
	if name != "m5" {
		return nil
	}
	return &cloudprovider.InstanceType{
		Name: "m5", Capacity: quantities("cpu", "2", "memory", "8Gi"),
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: quantities("memory", "1Gi")},
	}
}

func observed(revision, memory, allocatable string) v1alpha1.ObservedCapacity {
	return v1alpha1.ObservedCapacity{InstanceType: "m5", Revision: revision, Capacity: quantities("cpu", "2", "memory", memory), Allocatable: quantities("cpu", "2", "memory", allocatable)}
}

func TestLearn(t *testing.T) {
	m5 := func(memory, allocatable string) report {
		return report{"m5", quantities("cpu", "2", "memory", memory, "hugepages-2Mi", "0"), quantities("cpu", "2", "memory", allocatable)}
	}
	type entries = []v1alpha1.ObservedCapacity
	for name, tc := range map[string]struct {
		stored  entries
		reports []report
		want    entries
	}{
		"nothing":                         {},
		"what is declared is not stored":  {reports: []report{m5("8Gi", "7Gi")}},
		"less memory":                     {reports: []report{m5("7Gi", "6Gi")}, want: entries{observed("r", "7Gi", "6Gi")}},
		"only less allocatable":           {reports: []report{m5("8Gi", "6Gi")}, want: entries{observed("r", "8Gi", "6Gi")}},
		"the least of several":            {reports: []report{m5("7Gi", "6Gi"), m5("7500Mi", "5Gi")}, want: entries{observed("r", "7Gi", "5Gi")}},
		"the least of what was and is":    {stored: entries{observed("r", "7Gi", "6Gi")}, reports: []report{m5("7500Mi", "5Gi")}, want: entries{observed("r", "7Gi", "5Gi")}},
		"it stays without Nodes":          {stored: entries{observed("r", "7Gi", "6Gi")}, want: entries{observed("r", "7Gi", "6Gi")}},
		"another revision is forgotten":   {stored: entries{observed("old", "7Gi", "6Gi")}},
		"a type that is gone":             {reports: []report{{"gone", quantities("memory", "1Gi"), nil}}},
		"a Node that tells nothing":       {reports: []report{m5("0", "0"), {"m5", nil, nil}}},
		"what is not declared is nothing": {reports: []report{{"m5", quantities("ephemeral-storage", "1Gi"), nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := learn(tc.stored, tc.reports, declaredM5, "r")
			slices.Reverse(tc.reports)
			if diff := cmp.Diff(got, learn(tc.stored, tc.reports, declaredM5, "r")); diff != "" {
				t.Errorf("it depends on the order of the Nodes:\n%s", diff)
			}
			if diff := cmp.Diff(got, learn(got, tc.reports, declaredM5, "r")); diff != "" {
				t.Errorf("it is not stable:\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInaccuracies(t *testing.T) {
	for name, tc := range map[string]struct {
		memory string
		want   string
	}{
		"within the tolerance": {memory: "7800Mi"},
		"too little":           {memory: "7Gi", want: "memory of m5: declared 8Gi, observed 7Gi"},
		"too much":             {memory: "9Gi", want: "memory of m5: declared 8Gi, observed 9Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(inaccuracies([]v1alpha1.ObservedCapacity{observed("r", tc.memory, "6Gi"), {InstanceType: "gone"}}, declaredM5), ";")
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
