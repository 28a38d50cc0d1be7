// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// A failed claim without a NodePool is relaunched with an offering that fits now, and gets the
// annotations of a claim that is launched with that offering.
func TestRelaunchedClaimHasTheAnnotationsOfItsLaunch(t *testing.T) {
	for name, tc := range map[string]struct {
		unavailable bool // whether the failed offering is still unavailable
		want        string
		price       string
	}{
		"another offering": {unavailable: true, want: "large", price: "0.8"},
		"its own offering again, and the template has changed": {want: "small", price: "0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			r := w.newProcess()
			key := catalog.Key{InstanceType: "small", Zone: "a", CapacityType: karpv1.CapacityTypeOnDemand}
			before, err := generate.LaunchOf(t.Context(), r.clusters, r.catalog, newTemplate(), key)
			if err != nil {
				t.Fatal(err)
			}
			alone := launched("alone", func(c *karpv1.NodeClaim) {
				delete(c.Labels, karpv1.NodePoolLabelKey)
				c.Labels["user"] = "own"
				c.Annotations = map[string]string{
					"user": "own", v1alpha1.ScalableResourceAnnotation: before.Resource, v1alpha1.TemplateHashAnnotation: "old",
					v1alpha1.TemplateRevisionAnnotation: "old", v1alpha1.PriceAnnotation: "0.1",
				}
				c.StatusConditions().SetFalse(v1alpha1.ConditionMachineAvailable, "InsufficientCapacity", "none left")
			})
			failed := machine("failed", linkedTo("alone"), func(m *clusterv1.Machine) {
				m.Labels[clusterv1.MachineDeploymentNameLabel] = before.Resource
				conditions.Set(m, metav1.Condition{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "InsufficientInstanceCapacity", Message: "none left"})
			})
			if err := w.api.Create(t.Context(), before.Generated.Resource.API()); err != nil {
				t.Fatal(err)
			}
			if err := w.api.Create(t.Context(), failed); err != nil {
				t.Fatal(err)
			}
			status := alone.Status.DeepCopy()
			if err := w.api.Create(t.Context(), alone); err != nil {
				t.Fatal(err)
			}
			alone.Status = *status
			if err := w.api.Status().Update(t.Context(), alone); err != nil {
				t.Fatal(err)
			}
			if tc.unavailable {
				w.setTemplate(t, func(template *v1alpha1.KarpenterMachineTemplate) {
					template.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{
						InstanceType: "small", Zone: "a", CapacityType: karpv1.CapacityTypeOnDemand, Reason: "InsufficientCapacity", Failures: 1, Until: metav1.NewTime(now.Add(time.Minute)),
					}}
				})
			}
			told := &published{}
			r.recorder = told
			if err := reconcileNamed(t, r, before.Resource); err != nil {
				t.Fatal(err)
			}

			key.InstanceType = tc.want
			launch, err := generate.LaunchOf(t.Context(), r.clusters, r.catalog, newTemplate(), key)
			if err != nil {
				t.Fatal(err)
			}
			claim := w.claim(t, "alone")
			want := map[string]string{
				"user": "own", v1alpha1.ScalableResourceAnnotation: launch.Resource, v1alpha1.PriceAnnotation: tc.price,
				v1alpha1.TemplateHashAnnotation:     launch.Generated.Resource.GetLabels()[v1alpha1.TemplateHashLabel],
				v1alpha1.MachineHashesAnnotation:    launch.Generated.Hashes.String(),
				v1alpha1.TemplateRevisionAnnotation: catalog.RevisionOf(newTemplate()),
			}
			if diff := cmp.Diff(want, claim.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if got := claim.Labels[corev1.LabelInstanceTypeStable]; got != tc.want || claim.Labels["user"] != "own" {
				t.Errorf("got labels %v, want instance type %s", claim.Labels, tc.want)
			}
			if claim.Status.ProviderID != planner.ProvisionalID(claim.UID) || claim.Status.Capacity.Cpu().IsZero() || claim.Status.Allocatable.Cpu().IsZero() {
				t.Errorf("got the status %+v, want the capacity of its offering and its provisional ID", claim.Status)
			}
			if !slices.Contains(told.reasons(), "OfferingChanged") {
				t.Errorf("got events %v", told.reasons())
			}
			if retried := lifecycle.IsMarked(w.machine(t, "failed")); retried != !tc.unavailable {
				t.Errorf("the failed Machine is marked for deletion: %t, want %t", retried, !tc.unavailable)
			}
			if condition := claim.StatusConditions().Get(v1alpha1.ConditionMachineAvailable); lo.FromPtr(condition).Reason != v1alpha1.ReasonOfferingChanged {
				t.Errorf("got condition %v", condition)
			}
		})
	}
}

// A claim that another writer changes while it is relaunched keeps its offering until the next attempt. From the
// relaunch on, launchTimeoutSeconds counts again.
func TestClaimThatChangesWhileItIsRelaunched(t *testing.T) {
	w := newWorld(launched("a", func(c *karpv1.NodeClaim) {
		delete(c.Labels, karpv1.NodePoolLabelKey)
		c.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonResumed, "")
		for i := range c.Status.Conditions {
			c.Status.Conditions[i].LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
		}
	}), machine("m", linkedTo("a"), infrastructure("InsufficientInstanceCapacity")))
	w.setTemplate(t, func(template *v1alpha1.KarpenterMachineTemplate) {
		template.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{
			InstanceType: "small", Zone: "a", CapacityType: karpv1.CapacityTypeOnDemand, Reason: "InsufficientCapacity", Failures: 1, Until: metav1.NewTime(now.Add(time.Minute)),
		}}
	})
	api := w.api
	w.api = interceptor.NewClient(api, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, _ client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := api.SubResource(sub).Patch(ctx, object, patch, options...); err != nil {
				return err
			}
			claim := w.claim(t, "a")
			claim.Labels["theirs"] = "x"
			return api.Update(ctx, claim)
		},
	})
	result, err := w.newProcess().Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resourceName}})
	if claim := w.claim(t, "a"); err != nil || result.RequeueAfter == 0 || claim.Labels["theirs"] != "x" || claim.Labels[corev1.LabelInstanceTypeStable] != "small" {
		t.Errorf("got %+v, %v and labels %v, want another attempt", result, err, claim.Labels)
	}
	w.api = api
	if err := reconcileOnce(t, w.newProcess()); err != nil {
		t.Fatal(err)
	}
	if claim := w.claim(t, "a"); claim.Labels[corev1.LabelInstanceTypeStable] != "large" {
		t.Errorf("after the next attempt it has labels %v", claim.Labels)
	} else if since := claim.StatusConditions().Get(v1alpha1.ConditionMachineAvailable).LastTransitionTime; !since.After(now) {
		t.Errorf("launchTimeoutSeconds counts from %s", since)
	}
}

// A failed claim that is relaunched with its own offering may have no Machine that another one replaces.
func TestRelaunchWithoutAMachine(t *testing.T) {
	w := newWorld(launched("a"))
	if err := w.newProcess().replaceMachine(t.Context(), w.claim(t, "a"), &decided{Snapshot: &snapshot.Snapshot{Name: resourceName, State: planner.State{Now: now}}}); err != nil {
		t.Error(err)
	}
}
