// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// declaredM5 returns m5 with 2 CPUs and 8Gi, of which 1Gi is reserved.
func declaredM5(name string) *cloudprovider.InstanceType {
	if name != "m5" {
		return nil
	}
	return &cloudprovider.InstanceType{
		Name: "m5", Capacity: quantities("cpu", "2", "memory", "8Gi"),
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: quantities("memory", "1Gi")},
	}
}

func observed(nodes int32, revision, memory, allocatable string) v1alpha1.ObservedCapacity {
	return v1alpha1.ObservedCapacity{
		InstanceType: "m5", Revision: revision, Nodes: nodes,
		Capacity: quantities("cpu", "2", "memory", memory), Allocatable: quantities("cpu", "2", "memory", allocatable),
	}
}

// m5 returns the report of a Node of type m5.
func m5(memory, allocatable string) report {
	return report{"m5", quantities("cpu", "2", "memory", memory, "hugepages-2Mi", "0"), quantities("cpu", "2", "memory", allocatable), nil, catalog.Devices{}}
}

// several returns equal reports of a number of Nodes.
func several(count int, r report) []report { return slices.Repeat([]report{r}, count) }

func TestLearn(t *testing.T) {
	type entries = []v1alpha1.ObservedCapacity
	broken := m5("4Gi", "3Gi")
	for name, tc := range map[string]struct {
		stored  entries
		reports []report
		want    entries
	}{
		"nothing":                         {},
		"declared capacity is not stored": {reports: []report{m5("8Gi", "7Gi")}},
		"less memory":                     {reports: []report{m5("7Gi", "6Gi")}, want: entries{observed(1, "r", "7Gi", "6Gi")}},
		"only less allocatable":           {reports: []report{m5("8Gi", "6Gi")}, want: entries{observed(1, "r", "8Gi", "6Gi")}},
		"only less capacity":              {reports: []report{m5("7500Mi", "7Gi")}, want: entries{observed(1, "r", "7500Mi", "7Gi")}},
		"another revision is forgotten":   {stored: entries{observed(2, "old", "7Gi", "6Gi")}},
		"a type that no longer exists":    {reports: []report{{instanceType: "gone", capacity: quantities("memory", "1Gi")}}},
		"a Node that reports nothing":     {reports: []report{m5("0", "0"), {instanceType: "m5"}}},
		"undeclared resources":            {reports: []report{{instanceType: "m5", capacity: quantities("ephemeral-storage", "1Gi")}}},
		"a Node that reports nothing does not count": {
			reports: []report{m5("7Gi", "6Gi"), {instanceType: "m5"}}, want: entries{observed(1, "r", "7Gi", "6Gi")},
		},

		"the least of two":       {reports: []report{m5("7Gi", "6Gi"), m5("7500Mi", "5Gi")}, want: entries{observed(2, "r", "7Gi", "5Gi")}},
		"the least of four":      {reports: append(several(3, m5("8Gi", "7Gi")), broken), want: entries{observed(2, "r", "4Gi", "3Gi")}},
		"but not one of five":    {reports: append(several(4, m5("8Gi", "7Gi")), broken)},
		"nor one of ten":         {reports: append(several(9, m5("7Gi", "6Gi")), broken), want: entries{observed(2, "r", "7Gi", "6Gi")}},
		"nor two of ten":         {reports: append(several(8, m5("7Gi", "6Gi")), broken, m5("2Gi", "1Gi")), want: entries{observed(2, "r", "7Gi", "6Gi")}},
		"three of ten":           {reports: append(several(7, m5("7Gi", "6Gi")), several(3, broken)...), want: entries{observed(2, "r", "4Gi", "3Gi")}},
		"one of ten is close by": {reports: append(several(9, m5("7000Mi", "6000Mi")), m5("6800Mi", "5800Mi")), want: entries{observed(2, "r", "6800Mi", "5800Mi")}},

		"it recovers when the broken Node no longer exists": {stored: entries{observed(2, "r", "4Gi", "3Gi")}, reports: several(3, m5("7Gi", "6Gi")), want: entries{observed(2, "r", "7Gi", "6Gi")}},
		"and entirely":                                   {stored: entries{observed(2, "r", "4Gi", "3Gi")}, reports: several(3, m5("8Gi", "7Gi"))},
		"the Nodes that exist decide":                    {stored: entries{observed(2, "r", "6Gi", "5Gi")}, reports: []report{m5("7500Mi", "5500Mi")}, want: entries{observed(1, "r", "7500Mi", "5500Mi")}},
		"a little more changes nothing":                  {stored: entries{observed(2, "r", "7000Mi", "6000Mi")}, reports: several(2, m5("7010Mi", "6010Mi")), want: entries{observed(2, "r", "7000Mi", "6000Mi")}},
		"a little less counts":                           {stored: entries{observed(2, "r", "7000Mi", "6000Mi")}, reports: several(2, m5("6990Mi", "5990Mi")), want: entries{observed(2, "r", "6990Mi", "5990Mi")}},
		"it stays without Nodes":                         {stored: entries{observed(2, "r", "7Gi", "6Gi")}, want: entries{observed(2, "r", "7Gi", "6Gi")}},
		"what one Node had does not count without it":    {stored: entries{observed(1, "r", "4Gi", "3Gi")}, want: entries{observed(0, "r", "4Gi", "3Gi")}},
		"a second Node that reports the same confirms":   {stored: entries{observed(0, "r", "7Gi", "6Gi")}, reports: []report{m5("7100Mi", "6Gi")}, want: entries{observed(2, "r", "7100Mi", "6Gi")}},
		"a second Node that reports more does not":       {stored: entries{observed(0, "r", "4Gi", "3Gi")}, reports: []report{m5("7Gi", "6Gi")}, want: entries{observed(1, "r", "7Gi", "6Gi")}},
		"nor one that reports less":                      {stored: entries{observed(0, "r", "7Gi", "6Gi")}, reports: []report{m5("4Gi", "3Gi")}, want: entries{observed(1, "r", "4Gi", "3Gi")}},
		"nor one with more capacity only":                {stored: entries{observed(0, "r", "4Gi", "3Gi")}, reports: []report{m5("7Gi", "3Gi")}, want: entries{observed(1, "r", "7Gi", "3Gi")}},
		"nor one with more allocatable only":             {stored: entries{observed(0, "r", "7Gi", "3Gi")}, reports: []report{m5("7Gi", "6Gi")}, want: entries{observed(1, "r", "7Gi", "6Gi")}},
		"the same Node does not confirm what it reports": {stored: entries{observed(1, "r", "7Gi", "6Gi")}, reports: []report{m5("7Gi", "6Gi")}, want: entries{observed(1, "r", "7Gi", "6Gi")}},
		"one Node of what several had":                   {stored: entries{observed(2, "r", "7Gi", "6Gi")}, reports: []report{m5("7Gi", "6Gi")}, want: entries{observed(2, "r", "7Gi", "6Gi")}},
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

// For any Nodes, their order does not matter, and nothing changes while they stay. At least
// four of five Nodes have the learned capacity within tolerance and steady, and at most the
// share of rare Nodes have less.
func TestLearnedIsWhatMostNodesHave(t *testing.T) {
	mebibytes := rapid.Custom(func(t *rapid.T) int {
		return 4000 + 500*rapid.IntRange(0, 6).Draw(t, "size") + rapid.IntRange(0, 19).Draw(t, "more")
	})
	several := rapid.Map(rapid.SliceOf(rapid.SliceOf(mebibytes)), func(lists [][]int) []int { return slices.Concat(lists...) })
	reportsOf := func(memory []int) []report {
		return lo.Map(memory, func(m, _ int) report { return m5(fmt.Sprintf("%dMi", m), fmt.Sprintf("%dMi", m-1000)) })
	}
	property.Check(t, 1000, func(t *rapid.T) {
		memory := several.Draw(t, "memory of the Nodes")
		reports := reportsOf(memory)
		var stored []v1alpha1.ObservedCapacity
		if rapid.Bool().Draw(t, "has learned") {
			nodes, size := rapid.Int32Range(0, 2).Draw(t, "learned from"), rapid.IntRange(0, 6).Draw(t, "learned size")
			stored = []v1alpha1.ObservedCapacity{observed(nodes, "r", fmt.Sprintf("%dMi", 4000+500*size), "3000Mi")}
		}
		got := learn(stored, reports, declaredM5, "r")
		again := learn(got, reports, declaredM5, "r")
		shuffled := reportsOf(rapid.Permutation(memory).Draw(t, "another order"))
		if !cmp.Equal(got, learn(stored, shuffled, declaredM5, "r")) || !cmp.Equal(got, again) {
			t.Fatalf("got %v, and then %v", got, again)
		}
		if len(reports) == 0 || len(got) == 0 {
			return
		}
		learned := got[0].Capacity[corev1.ResourceMemory]
		less := lo.CountBy(reports, func(r report) bool { q := r.capacity[corev1.ResourceMemory]; return q.Cmp(learned) < 0 })
		if less > len(reports)/5 {
			t.Fatalf("%d of %d Nodes have less than %s", less, len(reports), learned.String())
		}
	})
}

// If the status has no room for the learned capacity of all types, types whose capacity
// Karpenter does not use are left out first, and then those with the last names. The list is in the order of names.
func TestLearnedFits(t *testing.T) {
	var stored []v1alpha1.ObservedCapacity
	declared := func(name string) *cloudprovider.InstanceType {
		return &cloudprovider.InstanceType{Name: name, Capacity: quantities("memory", "8Gi"), Overhead: &cloudprovider.InstanceTypeOverhead{}}
	}
	for i := range 800 {
		o := observed(int32(i%2*2), "r", "7Gi", "6Gi")
		o.InstanceType = fmt.Sprintf("type-%03d", i)
		stored = append(stored, o)
	}
	got := learn(stored, nil, declared, "r")
	names := func(learned []v1alpha1.ObservedCapacity) []string {
		return lo.Map(learned, func(o v1alpha1.ObservedCapacity, _ int) string { return o.InstanceType })
	}
	if diff := cmp.Diff([]string{"type-000", "type-001", "type-002"}, names(learn(stored[:3], nil, declared, "r"))); diff != "" {
		t.Errorf("with room for all (-want +got):\n%s", diff)
	}
	if size := budget.Size(got); size > budget.Observed || size < budget.Observed-1000 {
		t.Errorf("%d types have %d bytes, want nearly %d", len(got), size, budget.Observed)
	}
	want := lo.Times(len(got), func(i int) string { return fmt.Sprintf("type-%03d", 2*i+1) })
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInaccuracies(t *testing.T) {
	for name, tc := range map[string]struct {
		memory string
		nodes  int32
		want   string
	}{
		"within the tolerance":              {memory: "7800Mi", nodes: 1},
		"a little below the tolerance":      {memory: "7700Mi", nodes: 1, want: "memory of m5: declared 8Gi, observed 7700Mi"},
		"too little":                        {memory: "7Gi", nodes: 1, want: "memory of m5: declared 8Gi, observed 7Gi"},
		"too much":                          {memory: "9Gi", nodes: 2, want: "memory of m5: declared 8Gi, observed 9Gi"},
		"of one Node that no longer exists": {memory: "7Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(inaccuracies([]v1alpha1.ObservedCapacity{observed(tc.nodes, "r", tc.memory, "6Gi"), {InstanceType: "gone", Nodes: 2}}, declaredM5), ";")
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// reportingNode returns an initialized claim of type m5 for a template, and its Node, which reports two CPUs and some memory.
func reportingNode(template *v1alpha1.KarpenterMachineTemplate, memory, allocatable string) (*karpv1.NodeClaim, *corev1.Node) {
	claim := claimOf("c", "m5", "a", "on-demand")
	claim.Annotations[v1alpha1.TemplateRevisionAnnotation] = catalog.RevisionOf(template)
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
	claim.Status.NodeName = "node"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	node.Status.Capacity, node.Status.Allocatable = quantities("cpu", "2", "memory", memory), quantities("cpu", "2", "memory", allocatable)
	return claim, node
}

// The condition on the capacity is False while Nodes differ from what is declared, and True again afterwards. An error
// of the read of a Node is returned, unless the Node does not exist.
func TestCapacityAccurate(t *testing.T) {
	template := newTemplate()
	claim, node := reportingNode(template, "7Gi", "6Gi")
	c := newCell(template, claim, node)
	condition := func(want metav1.ConditionStatus, reason string) {
		t.Helper()
		stored, err := c.reconcile(t, "general")
		if got := stored.StatusConditions().Get(v1alpha1.ConditionCapacityAccurate); err != nil || got.Status != want || reason != "" && got.Reason != reason {
			t.Errorf("got %v and %+v, want %s", err, got, want)
		}
	}
	condition(metav1.ConditionFalse, v1alpha1.ReasonCapacityDiffers)
	node.Status.Capacity[corev1.ResourceMemory] = resource.MustParse("8Gi")
	if err := c.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	condition(metav1.ConditionTrue, "")
	c.fails = func(_ string, object any, _ string) error {
		if _, is := object.(*corev1.Node); is {
			return errors.New("no answer")
		}
		return nil
	}
	if _, err := c.reconcile(t, "general"); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("got %v, want the error of the Node", err)
	}
	if err := c.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	condition(metav1.ConditionTrue, "")
}
