// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// The condition repeats what the oldest NodeClaim that still needs a Machine waits for.
func TestMachinesProgressing(t *testing.T) {
	stalled := func(name string, age time.Duration, reason string) *karpv1.NodeClaim {
		claim := claimOf(name, "m5", "a", "on-demand")
		claim.CreationTimestamp = metav1.NewTime(began.Add(-age))
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
		claim.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, reason, "why "+name)
		return claim
	}
	progresses := claimOf("a-progresses", "m5", "a", "on-demand")
	progresses.CreationTimestamp = metav1.NewTime(began.Add(-time.Hour))
	progresses.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	deleting := stalled("a-deleting", time.Hour, v1alpha1.ReasonBlocked)
	deleting.Finalizers, deleting.DeletionTimestamp = []string{"x/y"}, &metav1.Time{Time: began}
	for name, tc := range map[string]struct {
		claims     []client.Object
		wantReason string // empty if it is True
		want       string
	}{
		"none waits":              {claims: []client.Object{progresses, deleting}},
		"the oldest":              {claims: []client.Object{progresses, stalled("b", time.Minute, v1alpha1.ReasonBlocked), stalled("c", time.Hour, v1alpha1.ReasonNoProgress)}, wantReason: v1alpha1.ReasonNoProgress, want: "NodeClaim c waits for Cluster API: why c"},
		"the oldest is the first": {claims: []client.Object{stalled("b", time.Hour, v1alpha1.ReasonBlocked), stalled("c", time.Minute, v1alpha1.ReasonNoProgress)}, wantReason: v1alpha1.ReasonBlocked, want: "NodeClaim b waits for Cluster API: why b"},
		"of one age by name":      {claims: []client.Object{stalled("d", time.Minute, v1alpha1.ReasonNoProgress), stalled("b", time.Minute, v1alpha1.ReasonBlocked), stalled("c", time.Minute, v1alpha1.ReasonNoProgress)}, wantReason: v1alpha1.ReasonBlocked, want: "NodeClaim b waits for Cluster API: why b"},
		"it was resumed":          {claims: []client.Object{stalled("b", time.Minute, v1alpha1.ReasonResumed)}},
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := newCell(append(tc.claims, newTemplate())...).reconcile(t, "general")
			if err != nil {
				t.Fatal(err)
			}
			got := stored.StatusConditions().Get(v1alpha1.ConditionMachinesProgressing)
			if got.IsFalse() != (tc.wantReason != "") || tc.wantReason != "" && (got.Reason != tc.wantReason || got.Message != tc.want) {
				t.Errorf("got %s, %s: %s, want %s: %s", got.Status, got.Reason, got.Message, tc.wantReason, tc.want)
			}
		})
	}
}

// The condition names the Nodes whose NodeClaims have the annotation.
func TestNodesTainted(t *testing.T) {
	untainted := claimOf("b", "m5", "a", "on-demand")
	untainted.Annotations[v1alpha1.TaintMissingAnnotation] = "node-b"
	for name, tc := range map[string]struct {
		claims []client.Object
		want   string // a part of the message; empty if it is True
	}{
		"all":  {claims: []client.Object{claimOf("a", "m5", "a", "on-demand")}},
		"some": {claims: []client.Object{claimOf("a", "m5", "a", "on-demand"), untainted}, want: "Nodes joined without the taint karpenter.sh/unregistered:NoExecute"},
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := newCell(append(tc.claims, newTemplate())...).reconcile(t, "general")
			if err != nil {
				t.Fatal(err)
			}
			got := stored.StatusConditions().Get(v1alpha1.ConditionNodesTainted)
			if got.IsTrue() != (tc.want == "") || !strings.Contains(got.Message, tc.want) || tc.want != "" && (got.Reason != v1alpha1.ReasonTaintMissing || !strings.HasSuffix(got.Message, "These Nodes are node-b")) {
				t.Errorf("got %s: %s", got.Status, got.Message)
			}
		})
	}
}

// Only initialized Nodes of the current revision report the capacity of an instance type.
func TestCapacityIsReportedBy(t *testing.T) {
	template := newTemplate()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
		// Nodes also report what is not declared.
		Capacity: quantities("cpu", "2", "memory", "7Gi", "ephemeral-storage", "20Gi"), Allocatable: quantities("cpu", "2", "memory", "6Gi"),
	}}
	for name, tc := range map[string]struct {
		change func(*karpv1.NodeClaim)
		want   int
	}{
		"an initialized Node":   {func(*karpv1.NodeClaim) {}, 1},
		"one that is not ready": {func(c *karpv1.NodeClaim) { c.StatusConditions().SetUnknown(karpv1.ConditionTypeInitialized) }, 0},
		"one of another revision": {func(c *karpv1.NodeClaim) {
			c.Annotations[v1alpha1.TemplateRevisionAnnotation] = "v1-other"
		}, 0},
		"one whose revision was computed in another way": {func(c *karpv1.NodeClaim) {
			c.Annotations[v1alpha1.TemplateRevisionAnnotation] = "v0-other"
		}, 1},
		"one without a revision": {func(c *karpv1.NodeClaim) {
			delete(c.Annotations, v1alpha1.TemplateRevisionAnnotation)
		}, 0},
		"one that no longer exists": {func(c *karpv1.NodeClaim) { c.Status.NodeName = "gone" }, 0},
		"one whose type no longer exists": {func(c *karpv1.NodeClaim) {
			c.Labels[corev1.LabelInstanceTypeStable] = "m4"
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			claim := claimOf("c", "m5", "a", "on-demand")
			claim.Annotations[v1alpha1.TemplateRevisionAnnotation] = catalog.RevisionOf(template)
			claim.Status.NodeName = "n"
			for _, condition := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized} {
				claim.StatusConditions().SetTrue(condition)
			}
			tc.change(claim)
			stored, err := newCell(claim, node.DeepCopy(), template.DeepCopy()).reconcile(t, "general")
			if err != nil || len(stored.Status.ObservedCapacity) != tc.want {
				t.Fatalf("got %+v and %v, want %d entries", stored.Status.ObservedCapacity, err, tc.want)
			}
			got := stored.StatusConditions().Get(v1alpha1.ConditionCapacityAccurate)
			if got.IsFalse() != (tc.want == 1) || tc.want == 1 && !strings.HasSuffix(got.Message, "memory of m5: declared 8Gi, observed 7Gi") {
				t.Errorf("got %s: %s", got.Status, got.Message)
			}
		})
	}
}

// A Node can differ by up to 5 percent of what is declared, in both directions.
func TestTolerance(t *testing.T) {
	for memory, want := range map[string]bool{"7783Mi": false, "7782Mi": true, "8601Mi": false, "8602Mi": true} {
		got := inaccuracies([]v1alpha1.ObservedCapacity{observed(1, "r", memory, "6Gi")}, declaredM5)
		if (len(got) > 0) != want {
			t.Errorf("%s of 8192Mi: got %v, want a difference: %t", memory, got, want)
		}
	}
}

// If the status has no room for all resources, those are listed that someone looks for: first paused ones, then
// those that are not ready. The list is in the order of names.
func TestListedResources(t *testing.T) {
	of := func(kind string, i int) v1alpha1.ScalableResourceStatus {
		s := v1alpha1.ScalableResourceStatus{Name: fmt.Sprintf("%s-%04d", kind, i), Kind: "MachineDeployment", InstanceType: "m5", Replicas: 2, ReadyReplicas: 2}
		switch kind {
		case "z-paused":
			s.Paused = true
		case "y-starting":
			s.ReadyReplicas = 1
		}
		return s
	}
	var few, many []v1alpha1.ScalableResourceStatus
	for i := range 40 {
		many = append(many, of("a-settled", 3*i), of("y-starting", i), of("z-paused", i), of("a-settled", 3*i+1), of("a-settled", 3*i+2))
	}
	few = append(few, many[:8]...)
	got := listed(slices.Clone(few))
	if len(got) != len(few) || !slices.IsSortedFunc(got, func(a, b v1alpha1.ScalableResourceStatus) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("got %v, want all in the order of names", got)
	}
	for i := range 400 {
		many = append(many, of("a-settled", 1000+i))
	}
	got = listed(slices.Clone(many))
	kinds := map[string]int{}
	for _, r := range got {
		kinds[r.Name[:len(r.Name)-len("-0000")]]++
	}
	if kinds["z-paused"] != 40 || kinds["y-starting"] != 40 || len(got) >= len(many) {
		t.Errorf("got %v of %d, want all 40 that are paused and all 40 that start", kinds, len(many))
	}
	if size := budget.Size(got); size > budget.Resources || size < budget.Resources-500 {
		t.Errorf("they have %d bytes, want nearly %d", size, budget.Resources)
	}
	if diff := cmp.Diff(got, listed(slices.Clone(got))); diff != "" {
		t.Errorf("the list depends on the order (-want +got):\n%s", diff)
	}
}
