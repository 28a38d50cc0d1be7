// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Karpenter replaces only the claims of a NodePool.
func TestFailuresSayWhatHappensNext(t *testing.T) {
	failed := &failure.Failure{Kind: failure.InsufficientCapacity, Message: "none left"}
	for name, tc := range map[string]struct {
		change func(*karpv1.NodeClaim)
		want   string
	}{
		"of a NodePool":      {func(*karpv1.NodeClaim) {}, "so Karpenter chooses another: none left"},
		"without a NodePool": {func(c *karpv1.NodeClaim) { delete(c.Labels, karpv1.NodePoolLabelKey) }, "so it is deleted, and nothing replaces it, because it has no NodePool: none left"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := launched("c", tc.change)
			for _, event := range []string{
				claimFailed(claim, fixture.Spot, failed).Message,
				podWaits(types.NamespacedName{Namespace: "default", Name: "p"}, claim, fixture.Spot, failed).Message,
			} {
				if !strings.HasSuffix(event, tc.want) {
					t.Errorf("got %q, want it to end with %q", event, tc.want)
				}
			}
		})
	}
}

// All events are warnings. That of an offering says until when it is unavailable.
func TestTypesOfEvents(t *testing.T) {
	failed := &failure.Failure{Kind: failure.InsufficientCapacity, Message: "none left"}
	stall, claim, pod := planner.Stall{Reason: "x"}, launched("c"), types.NamespacedName{Namespace: "default", Name: "p"}
	template := newTemplate()
	template.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{InstanceType: "other", Until: metav1.NewTime(now.Add(time.Hour))}, {
		InstanceType: fixture.Spot.InstanceType, Zone: fixture.Spot.Zone, CapacityType: fixture.Spot.CapacityType, Until: metav1.NewTime(now.Add(time.Minute)),
	}, {InstanceType: "another", Until: metav1.NewTime(now.Add(2 * time.Hour))}}
	for name, tc := range map[string]struct {
		event events.Event
		want  string
	}{
		"an offering":        {offeringUnavailable(template, fixture.Spot, failed), corev1.EventTypeWarning},
		"a failure":          {claimFailed(claim, fixture.Spot, failed), corev1.EventTypeWarning},
		"a failure, of Pods": {podWaits(pod, claim, fixture.Spot, failed), corev1.EventTypeWarning},
		"a stall":            {claimWaits(claim, stall), corev1.EventTypeWarning},
		"a stall, of Pods":   {podWaitsForClusterAPI(pod, claim, stall), corev1.EventTypeWarning},
		"its Cluster ends":   {clusterDeleting(claim, "x"), corev1.EventTypeWarning},
		"its Machine ends":   {machineLost(claim, "x"), corev1.EventTypeWarning},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.event.Type != tc.want {
				t.Errorf("got type %s, want %s", tc.event.Type, tc.want)
			}
		})
	}
	if got := offeringUnavailable(template, fixture.Spot, failed).Message; !strings.HasSuffix(got, "is unavailable until 12:01 UTC: none left") {
		t.Errorf("got %q, want the time of its own mark", got)
	}
}

// A stall is reported on its claim and on the Pods that wait for it, once.
func TestStallIsReportedOnce(t *testing.T) {
	w := newWorld(launched("c"))
	r, told := w.newProcess(), &published{}
	r.recorder = told
	r.podsOf = func(string) []types.NamespacedName { return []types.NamespacedName{{Namespace: "default", Name: "p"}} }
	for range 2 {
		if err := r.reportStall(t.Context(), w.claim(t, "c"), planner.Stall{Reason: v1alpha1.ReasonNoProgress, Message: "nothing acts"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(*told) != 2 {
		t.Errorf("got events %v, want one of the claim and one of its Pod", *told)
	}
	ended := w.claim(t, "c")
	if got := ended.StatusConditions().Get(v1alpha1.ConditionMachineAvailable); got == nil || got.Reason != v1alpha1.ReasonNoProgress {
		t.Errorf("got condition %+v, want the stall", got)
	}
	w.remove(t, ended.DeepCopy())
	if err := r.reportStall(t.Context(), ended, planner.Stall{Reason: v1alpha1.ReasonBlocked, Message: "blocked"}); !precondition.IsGone(err) || len(*told) != 2 {
		t.Errorf("after its end: got events %v and %v, want no more", *told, err)
	}
}
