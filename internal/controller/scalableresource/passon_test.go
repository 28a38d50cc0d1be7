// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"cmp"
	"testing"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Raised replicas are passed on to the MachineSet only if the API server has them on the same
// MachineDeployment, and not on another one of the same name, and if Cluster API has observed them. The
// MachineDeployment controller can do it alone if no Machine leaves, and replicas exceed the number of Machines.
func TestScaleMachineSets(t *testing.T) {
	for name, tc := range map[string]struct {
		uid      types.UID
		replicas int32
		observed int64
		machines []string // those that do not leave; one leaves if it is empty
		has      int32    // replicas of the MachineSet; 1 if zero
		ending   bool     // the Cluster is being deleted
		change   func(*clusterv1.MachineDeployment)
		want     int32
	}{
		"the MachineDeployment has them":           {uid: "1", replicas: 3, observed: 7, want: 3},
		"Cluster API may not have seen them yet":   {uid: "1", replicas: 3, observed: 6, want: 1},
		"it has other replicas by now":             {uid: "1", replicas: 2, observed: 7, want: 1},
		"another one of its name has them already": {uid: "2", replicas: 3, observed: 7, want: 1},
		"none leaves, and one is surplus":          {uid: "1", replicas: 3, observed: 7, machines: []string{"a", "b", "c"}, want: 3},
		"the MachineSet has more":                  {uid: "1", replicas: 3, observed: 7, has: 5, want: 5},
		"the Cluster is being deleted":             {uid: "1", replicas: 3, observed: 7, ending: true, want: 1},
		"it is paused by its annotation":           {uid: "1", replicas: 3, observed: 7, change: pausedByAnnotation, want: 1},
		"it is paused in its spec":                 {uid: "1", replicas: 3, observed: 7, change: pausedInSpec, want: 1},
		"none leaves, and two are still missing":   {uid: "1", replicas: 3, observed: 7, machines: []string{"a"}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "general", UID: "1"}}
			live := deployment.DeepCopy()
			live.UID, live.Spec.Replicas = tc.uid, &tc.replicas
			live.Generation, live.Status.ObservedGeneration = 7, tc.observed
			if tc.change != nil {
				tc.change(live)
			}
			set := fixture.MachineSet("a", "general", cmp.Or(tc.has, 1))
			clusters := fixture.Clusters(set)
			cached := clusters.Management.GetClient()
			clusters.Management = fixture.Cluster{Client: cached, Live: fixture.Clusters(live).Management.GetClient()}
			leaving := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: timestamp.Format(fixture.Noon)}}}
			machines := map[string]*clusterv1.Machine{"m": leaving}
			if len(tc.machines) > 0 {
				machines = lo.SliceToMap(tc.machines, func(name string) (string, *clusterv1.Machine) { return name, fixture.OwnedBy(name, "a") })
			}
			snap := &decided{Snapshot: &snapshot.Snapshot{Name: "general", Resource: scalable.New(deployment), Machines: machines, State: planner.State{Now: fixture.Noon, ClusterDeleting: tc.ending}}}
			if err := (&Reconciler{clusters: clusters}).scaleMachineSets(t.Context(), snap, 3); err != nil {
				t.Fatal(err)
			}
			if err := cached.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
				t.Fatal(err)
			}
			if got := *set.Spec.Replicas; got != tc.want {
				t.Errorf("got %d replicas of the MachineSet, want %d", got, tc.want)
			}
		})
	}
}

func pausedByAnnotation(d *clusterv1.MachineDeployment) {
	d.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
}

func pausedInSpec(d *clusterv1.MachineDeployment) { d.Spec.Paused = new(true) }
