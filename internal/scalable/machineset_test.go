// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/link"
)

// machineSet returns one of a MachineDeployment that has acted on its replicas.
func machineSet(name, deployment string, replicas int32) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name, Generation: 3, Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: deployment}}}
	set.Spec.Replicas = &replicas
	set.Status.ObservedGeneration = 3
	return set
}

func scalingUp(set *clusterv1.MachineSet, message string) *clusterv1.MachineSet {
	conditions.Set(set, metav1.Condition{Type: clusterv1.MachineSetScalingUpCondition, Status: metav1.ConditionTrue, Reason: "ScalingUp", Message: message})
	return set
}

func TestObserveMachineSets(t *testing.T) {
	behind, going := machineSet("a", "general", 2), machineSet("b", "general", 2)
	behind.Status.ObservedGeneration = 2
	going.DeletionTimestamp, going.Finalizers, going.Status.ObservedGeneration = new(metav1.NewTime(noon)), []string{"x"}, 1
	for name, tc := range map[string]struct {
		sets    []*clusterv1.MachineSet
		want    link.MachineSet
		problem string
	}{
		"none":                      {},
		"one":                       {sets: []*clusterv1.MachineSet{machineSet("a", "general", 2)}, want: link.MachineSet{Replicas: 2}},
		"one that is behind":        {sets: []*clusterv1.MachineSet{behind}, want: link.MachineSet{Replicas: 2, Behind: true}},
		"two, one of them behind":   {sets: []*clusterv1.MachineSet{behind, machineSet("b", "general", 1)}, want: link.MachineSet{Replicas: 3, Behind: true}},
		"one that is being deleted": {sets: []*clusterv1.MachineSet{machineSet("a", "general", 1), going}, want: link.MachineSet{Replicas: 1}},
		"that of another":           {sets: []*clusterv1.MachineSet{machineSet("a", "other", 2)}},
		"one that cannot scale": {sets: []*clusterv1.MachineSet{scalingUp(machineSet("a", "general", 2), "version skew preflight check failed")},
			want: link.MachineSet{Replicas: 2}, problem: ": ScalingUp: version skew preflight check failed"},
		"the first of two problems": {sets: []*clusterv1.MachineSet{scalingUp(machineSet("a", "general", 1), "one"), scalingUp(machineSet("b", "general", 1), "two")},
			want: link.MachineSet{Replicas: 2}, problem: ": ScalingUp: one"},
		"one that says nothing": {sets: []*clusterv1.MachineSet{scalingUp(machineSet("a", "general", 2), "")}, want: link.MachineSet{Replicas: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, set := range tc.sets {
				objects = append(objects, set)
			}
			snap := &Snapshot{Name: "general", Now: noon, Settings: settings}
			if err := (machineDeployments{}).observe(t.Context(), clustersWith(objects...), snap); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(link.Scaling(tc.want), snap.scaling); diff != "" {
				t.Errorf("scaling (-want +got):\n%s", diff)
			}
			if snap.scalingProblem != tc.problem {
				t.Errorf("problem: got %q, want %q", snap.scalingProblem, tc.problem)
			}
		})
	}
}

// What keeps a MachineSet from making Machines is what a claim says that has waited for
// too long.
func TestFailureSaysWhatIsWrongWithScaling(t *testing.T) {
	snap := &Snapshot{Name: "general", Now: noon, Settings: settings, Resource: resourceOf(machineDeployments{}, &clusterv1.MachineDeployment{})}
	set := scalingUp(machineSet("a", "general", 1), "version skew preflight check failed")
	if err := (machineDeployments{}).observe(t.Context(), clustersWith(set), snap); err != nil {
		t.Fatal(err)
	}
	if got := snap.Failure(claimOf(9 * time.Minute)); got != nil {
		t.Errorf("in time: got %+v", got)
	}
	const want = "Cluster API has created no Machine in 10m0s: ScalingUp: version skew preflight check failed"
	if got := snap.Failure(claimOf(10 * time.Minute)); got == nil || got.Kind != LaunchTimeout || got.Message != want {
		t.Errorf("got %+v, want %q", got, want)
	}
}

// behind is a cluster whose API server has what its cache has not.
type behind struct {
	clusterOf
	api client.Reader
}

func (b behind) GetAPIReader() client.Reader { return b.api }

// Raised replicas are passed on only as long as the API server has them on the very
// MachineDeployment that they were set on, and not on another one of its name.
func TestPassOn(t *testing.T) {
	for name, tc := range map[string]struct {
		uid      types.UID
		replicas int32
		want     int32
	}{
		"the MachineDeployment has them":   {uid: "1", replicas: 3, want: 3},
		"it has other replicas by now":     {uid: "1", replicas: 2, want: 1},
		"another one of its name has them": {uid: "2", replicas: 3, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "general", UID: "1"}}
			live := deployment.DeepCopy()
			live.UID, live.Spec.Replicas = tc.uid, &tc.replicas
			set := machineSet("a", "general", 1)
			clusters := clustersWith(set)
			cached := clusters.Management.GetClient()
			clusters.Management = behind{clusterOf: clusterOf{client: cached}, api: clustersWith(live).Management.GetClient()}
			leaving := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: Timestamp(noon)}}}
			snap := &Snapshot{Name: "general", Now: noon, Resource: resourceOf(machineDeployments{}, deployment), Machines: map[string]*clusterv1.Machine{"m": leaving}}
			if err := snap.PassOn(t.Context(), clusters, 3); err != nil {
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
