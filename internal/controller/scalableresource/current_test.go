// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/settings"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// withReplicas returns the MachineDeployment "general", on which Cluster API has acted.
func withReplicas(replicas int32) *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: fixture.Served.Namespace, Name: "general", UID: "1", Labels: map[string]string{v1alpha1.TemplateLabel: "general"},
	}}
	deployment.Spec.Replicas = &replicas
	return deployment
}

// A deletable Machine is deleted only while the API server has the replicas of the plan. If they were
// raised since, Cluster API would replace the Machine.
func TestDeletableMachineStaysWhenReplicasWereRaised(t *testing.T) {
	cached := []client.Object{withReplicas(1), fixture.MachineSet("a", "general", 1)}
	for name, tc := range map[string]struct {
		live       []client.Object // what the API server has; nothing if it does not answer
		gone       bool            // the resource no longer exists
		notInPlan  bool
		after      time.Duration // since the Machine was marked
		deleting   bool          // the Machine is being deleted, and its hook blocks it
		kept, fail bool
	}{
		"nothing has changed":                                {live: cached},
		"replicas were raised":                               {live: []client.Object{withReplicas(2), cached[1]}, kept: true},
		"replicas of its MachineSet were raised":             {live: []client.Object{cached[0], fixture.MachineSet("a", "general", 2)}, kept: true},
		"replicas were raised, after loweringTimeout":        {live: []client.Object{withReplicas(2), cached[1]}, after: loweringTimeout},
		"replicas were raised, right before loweringTimeout": {live: []client.Object{withReplicas(2), cached[1]}, after: loweringTimeout - time.Second, kept: true},
		"it is being deleted":                                {live: cached, deleting: true},
		"it is being deleted, and replicas were raised":      {live: []client.Object{withReplicas(2), cached[1]}, deleting: true, kept: true},
		"the plan counts the Machine":                        {live: cached, notInPlan: true, kept: true},
		"the resource no longer exists":                      {gone: true},
		"the API server does not answer":                     {kept: true, fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OwnedBy("m", "a")
			machine.ResourceVersion, machine.Labels = "", map[string]string{clusterv1.MachineSetNameLabel: "a"}
			machine.Annotations = map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: timestamp.Format(fixture.Noon)}
			if tc.deleting {
				machine.DeletionTimestamp, machine.Finalizers = new(metav1.NewTime(fixture.Noon)), []string{clusterv1.MachineFinalizer}
				machine.Annotations[v1alpha1.TerminateHookAnnotation] = ""
			}
			clusters := fixture.Clusters(machine, withReplicas(1), fixture.MachineSet("a", "general", 1))
			management := clusters.Management.GetClient()
			live := interceptor.NewClient(fixture.Clusters(tc.live...).Management.GetClient().(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if tc.fail {
						return errors.New("no answer")
					}
					return c.Get(ctx, key, object, options...)
				},
			})
			clusters.Management = fixture.Cluster{Client: management, Live: live}
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
				t.Fatal(err)
			}
			snap := &decided{Snapshot: &snapshot.Snapshot{Name: "general", Machines: map[string]*clusterv1.Machine{"m": machine}, State: planner.State{Now: fixture.Noon.Add(tc.after)}}}
			if !tc.gone {
				snap.Resource = scalable.New(withReplicas(1))
			}
			if !tc.notInPlan {
				snap.Plan.Deletable = []string{"m"}
			}
			if _, err := (&Reconciler{clusters: clusters}).deleteMarked(t.Context(), snap); (err != nil) != tc.fail {
				t.Fatal(err)
			}
			err := management.Get(t.Context(), client.ObjectKeyFromObject(machine), machine)
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if kept := err == nil && (!tc.deleting || lifecycle.WaitsForHook(machine)); kept != tc.kept {
				t.Errorf("the Machine is kept: %t, want %t", kept, tc.kept)
			}
		})
	}
}

// Replicas are changed, and an empty resource is deleted, only as the plan has read it: a write since may be a
// claim's.
func TestResourceThatHasChangedStaysAsItIs(t *testing.T) {
	empty := map[string]string{v1alpha1.EmptySinceAnnotation: timestamp.Format(fixture.Noon.Add(-time.Hour))}
	for name, tc := range map[string]struct {
		annotations map[string]string
		machines    int
		replicas    int32 // in the plan; the resource has 2
		want        int32 // if it has not changed; -1 if it is deleted
	}{
		"replicas are raised":        {machines: 1, replicas: 3, want: 3},
		"replicas are lowered":       {machines: 1, replicas: 1, want: 1},
		"it has been empty":          {annotations: empty, want: -1},
		"it has been empty for less": {annotations: map[string]string{v1alpha1.EmptySinceAnnotation: timestamp.Format(fixture.Noon)}, want: 0},
	} {
		for when, changed := range map[string]bool{"as it was read": false, "changed since": true} {
			t.Run(name+", "+when, func(t *testing.T) {
				object := withReplicas(2)
				object.Annotations = tc.annotations
				clusters := fixture.Clusters(object, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}})
				management := clusters.Management.GetClient()
				if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
				if changed {
					other := object.DeepCopy()
					other.Labels["theirs"] = "x"
					if err := management.Update(t.Context(), other); err != nil {
						t.Fatal(err)
					}
				}
				snap := &decided{Snapshot: &snapshot.Snapshot{Name: "general", Resource: scalable.New(object), Settings: settings.Settings{EmptyTTL: time.Minute}, State: planner.State{Now: fixture.Noon}}}
				snap.Machines, snap.Plan.Replicas = map[string]*clusterv1.Machine{}, tc.replicas
				if tc.machines > 0 {
					snap.Machines["m"] = fixture.Machine(time.Minute)
				}
				r := newReconciler(clusters, nil, silent{}, clocktesting.NewFakeClock(fixture.Noon))
				if _, err := r.update(t.Context(), snap); apierrors.IsConflict(err) != changed || err != nil && !changed {
					t.Errorf("got %v, want a conflict: %t", err, changed)
				}
				after, got := withReplicas(0), int32(-1)
				if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), after); err == nil {
					got = *after.Spec.Replicas
				}
				want := tc.want
				if changed {
					want = 2
				}
				if got != want {
					t.Errorf("got %d replicas, want %d", got, want)
				}
			})
		}
	}
}
