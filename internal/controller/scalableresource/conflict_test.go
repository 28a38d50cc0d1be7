// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// A conflict on a claim is tried again although the predicates drop the event of the write that caused
// it: core has written a condition that no decision depends on.
func TestConflictsAreTriedAgain(t *testing.T) {
	alone := func(c *karpv1.NodeClaim) { delete(c.Labels, karpv1.NodePoolLabelKey) }
	stalled := func(c *karpv1.NodeClaim) {
		c.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonNoProgress, "nothing acts")
	}
	older := launched("older", func(c *karpv1.NodeClaim) {
		c.CreationTimestamp, c.Status.ProviderID = metav1.NewTime(now.Add(-2*time.Minute)), "real://first"
	})
	first := machine("first", linkedTo("older"), withID("real://first"))
	failed := machine("m", linkedTo("a"), infrastructure("InsufficientInstanceCapacity"))
	silent := machine("m", linkedTo("a"), func(m *clusterv1.Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute)) })
	for name, tc := range map[string]struct {
		objects         []client.Object
		limited, marked bool
	}{
		"its ID is reset":                   {objects: []client.Object{launched("a", func(c *karpv1.NodeClaim) { c.Status.ProviderID = "real://gone" })}},
		"its launch stalls":                 {objects: []client.Object{launched("a"), silent}},
		"its launch goes on":                {objects: []client.Object{launched("a", stalled), machine("m", linkedTo("a"), infrastructure("NotReady"))}},
		"it is replaced":                    {objects: []client.Object{launched("a"), failed}, marked: true},
		"it is replaced because of a limit": {objects: []client.Object{launched("a"), older, first}, limited: true},
		"it is deleted because of a limit":  {objects: []client.Object{launched("a", alone), older, first}, limited: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := make([]client.Object, 0, len(tc.objects))
			for _, object := range tc.objects {
				objects = append(objects, object.DeepCopyObject().(client.Object))
			}
			w := newWorld(objects...)
			if tc.limited {
				w.limit(t, func(template *v1alpha1.KarpenterMachineTemplate) { template.Spec.MaxMachines = new(int32(1)) })
			}
			if tc.marked {
				w.setTemplate(t, func(template *v1alpha1.KarpenterMachineTemplate) {
					template.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{
						InstanceType: "small", Zone: "a", CapacityType: karpv1.CapacityTypeOnDemand, Reason: "InsufficientCapacity", Failures: 1, Until: metav1.NewTime(now.Add(time.Minute)),
					}}
				})
			}
			w.api = interceptor.NewClient(w.api, interceptor.Funcs{
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return apierrors.NewConflict(schema.GroupResource{}, "a", nil)
				},
			})
			result, err := w.newProcess().Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resourceName}})
			if err != nil {
				t.Fatal(err)
			}
			if result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
				t.Errorf("the next attempt is after %s", result.RequeueAfter)
			}
		})
	}
}

// A template that has changed since it was read is not written, and nothing is reported.
func TestNoWriteToWhatHasChanged(t *testing.T) {
	w := newWorld(launched("c", func(c *karpv1.NodeClaim) { c.Labels["theirs"] = "x" }))
	r, told := w.newProcess(), &published{}
	r.recorder = told
	claim, template := w.claim(t, "c"), newTemplate()
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(template), template); err != nil {
		t.Fatal(err)
	}
	template.ResourceVersion = "1"
	why := &failure.Failure{Kind: failure.InsufficientCapacity, Message: "none left"}
	if err := r.markUnavailable(t.Context(), claim, why, &decided{Snapshot: &snapshot.Snapshot{Template: template, State: planner.State{Now: now}}}); !apierrors.IsConflict(err) {
		t.Errorf("the template: got %v, want a conflict", err)
	}
	if len(*told) > 0 {
		t.Errorf("got events %v", *told)
	}
	if r.catalog.IsMarked(template, catalog.KeyOf(claim), now) {
		t.Error("the offering is marked in this process only")
	}
}

// A claim that could not be deleted is deleted by the next attempt.
func TestFailedDeletionsAreTriedAgain(t *testing.T) {
	w := newWorld(launched("c"))
	w.api = interceptor.NewClient(w.api, interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return errors.New("no answer")
		},
	})
	r := w.newProcess()
	snap := decide(&snapshot.Snapshot{Name: resourceName, Claims: []karpv1.NodeClaim{*w.claim(t, "c")}, State: planner.State{Now: now, ClusterDeleting: true}})
	if err := r.deleteWithCluster(t.Context(), snap); err == nil {
		t.Error("with its Cluster: got no error")
	}
	lost := &snap.Claims[0]
	lost.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	lost.Status.ProviderID = "real://m"
	snap.State.ClusterDeleting, snap.Machines = false, map[string]*clusterv1.Machine{
		"m": machine("m", linkedTo("c"), withID("real://m"), func(m *clusterv1.Machine) { m.DeletionTimestamp = new(metav1.NewTime(now)) }),
	}
	if _, err := r.deleteLost(t.Context(), snap); err == nil {
		t.Error("with its Machine: got no error")
	}
	if err := r.replace(t.Context(), w.claim(t, "c"), &failure.Failure{Kind: failure.InsufficientCapacity, Message: "none left"}); err == nil {
		t.Error("after a failure: got no error")
	}
}
