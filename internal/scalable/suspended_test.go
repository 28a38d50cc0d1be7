// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Nothing is changed on a Machine that is paused, or whose resource or Cluster is. A rollout suspends the Machines of
// its resource too, except for those that it waits for.
func TestMachineSuspended(t *testing.T) {
	paused := map[string]string{clusterv1.PausedAnnotation: ""}
	adopted := map[string]string{v1alpha1.AdoptedAnnotation: timestamp.Format(fixture.Noon)}
	for name, tc := range map[string]struct {
		clusterPaused, noCluster bool
		ofPool, deleting         bool
		machine, resource        map[string]string // annotations
		specPaused               bool
		sets                     []int32 // replicas of the MachineSets
		left                     int32   // Machines that the last MachineSet still has
		topology                 bool    // the topology of the Cluster sets the replicas
		noResource               bool
		want                     bool
	}{
		"nothing is paused":                           {sets: []int32{2}},
		"its Cluster is paused":                       {clusterPaused: true, want: true},
		"its Cluster does not exist":                  {noCluster: true},
		"it is paused":                                {machine: paused, want: true},
		"its resource is paused":                      {resource: paused, want: true},
		"its resource is paused in its spec":          {specPaused: true, want: true},
		"its resource is paused, and it is deleted":   {specPaused: true, deleting: true, want: true},
		"a resource of the other kind is paused":      {resource: paused, ofPool: true},
		"its resource no longer exists":               {noResource: true},
		"an adopted resource":                         {resource: adopted, sets: []int32{2, 0}},
		"an adopted resource in a rollout":            {resource: adopted, sets: []int32{2, 1}, want: true},
		"an adopted resource, rollout, Machines left": {resource: adopted, sets: []int32{2, 0}, left: 1, want: true},
		"an adopted resource of a topology":           {resource: adopted, sets: []int32{2}, topology: true, want: true},
		"one that is deleted in a rollout":            {resource: adopted, sets: []int32{2, 1}, deleting: true},
		"a generated resource":                        {sets: []int32{2}},
		"a generated resource with two MachineSets":   {sets: []int32{2, 1}, want: true},
		"one that is deleted with two MachineSets":    {sets: []int32{2, 1}, deleting: true},
		"an adopted resource that is paused, rollout": {resource: lo.Assign(adopted, paused), sets: []int32{2, 1}, deleting: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: fixture.Served.Namespace, Name: "general", Labels: map[string]string{v1alpha1.TemplateLabel: "general"}, Annotations: tc.resource,
			}}
			deployment.Spec.Paused = &tc.specPaused
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			cluster.Spec.Paused = &tc.clusterPaused
			if tc.topology {
				deployment.Labels[clusterv1.ClusterTopologyOwnedLabel], deployment.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] = "", "workers"
				cluster.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Name: "workers", Replicas: new(int32(3))}}
			}
			var objects []client.Object
			for i, replicas := range tc.sets {
				set := fixture.MachineSet(string(rune('a'+i)), "general", replicas)
				if i == len(tc.sets)-1 {
					set.Status.Replicas = &tc.left
				}
				objects = append(objects, set)
			}
			if !tc.noCluster {
				objects = append(objects, cluster)
			}
			if !tc.noResource {
				objects = append(objects, deployment)
			}
			machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
			if tc.ofPool {
				machine.Labels = map[string]string{clusterv1.MachinePoolNameLabel: "general"}
			}
			machine.Annotations = tc.machine
			if tc.deleting {
				machine.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
			}
			got, err := MachineSuspended(t.Context(), fixture.Clusters(objects...), machine)
			if err != nil || got != tc.want {
				t.Errorf("got %t (%v), want %t", got, err, tc.want)
			}
		})
	}
}

// Copies are of one Cluster, and not made for a Machine.
func TestCopies(t *testing.T) {
	objects := map[string]map[string]string{
		"copy":                          GeneratedLabels(fixture.Served, "general"),
		"of-another-template":           GeneratedLabels(fixture.Served, "other"),
		"of-another-cluster":            lo.Assign(GeneratedLabels(fixture.Served, "general"), map[string]string{clusterv1.ClusterNameLabel: "neighbour"}),
		"of-a-user":                     {clusterv1.ClusterNameLabel: fixture.Served.Name},
		"for-a-machine":                 lo.Assign(GeneratedLabels(fixture.Served, "general"), map[string]string{clusterv1.MachineDeploymentNameLabel: "x"}),
		"for-a-machine-of-a-set":        lo.Assign(GeneratedLabels(fixture.Served, "general"), map[string]string{clusterv1.MachineSetNameLabel: "x"}),
		"for-a-machine-of-a-pool":       lo.Assign(GeneratedLabels(fixture.Served, "general"), map[string]string{clusterv1.MachinePoolNameLabel: "x"}),
		"of-the-template-of-no-cluster": {v1alpha1.TemplateLabel: "general"},
	}
	var got []string
	for name, set := range objects {
		if copiesOf(fixture.Served).Matches(labels.Set(set)) {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"copy", "of-another-template"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A Machine of an adopted resource gets the labels of its offering with the link. One of a generated resource has
// them.
func TestLinkLabels(t *testing.T) {
	unzoned := fixture.Spot
	unzoned.Zone = ""
	adopted := New(Adopt(&clusterv1.MachineDeployment{}, nil, "general", fixture.Spot))
	withoutZone := New(Adopt(&clusterv1.MachineDeployment{}, nil, "general", unzoned))
	generated := New(&clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Labels: OfferingLabels("general", fixture.Spot)}})
	of := map[string]string{v1alpha1.TemplateLabel: "general", v1alpha1.InstanceTypeLabel: "m5.large", v1alpha1.CapacityTypeLabel: "spot"}
	for name, tc := range map[string]struct {
		resource *Resource
		want     map[string]string
	}{
		"adopted":                 {resource: adopted, want: lo.Assign(of, map[string]string{v1alpha1.ZoneLabel: "us-east-1a"})},
		"adopted, without a zone": {resource: withoutZone, want: of},
		"generated":               {resource: generated},
		"no longer there":         {},
	} {
		if got := LinkLabels(tc.resource); !maps.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// Times that a user has spoiled are corrected if a wait depends on them.
func TestTimestamps(t *testing.T) {
	pool, waits := New(fixture.MachinePool(nil)), []string{v1alpha1.ReplicasSetAtAnnotation, v1alpha1.ReplicasLoweredAtAnnotation}
	pool.SetReplicas(3, fixture.Noon)
	for key := range pool.GetAnnotations() {
		if !slices.Contains(waits, key) {
			t.Errorf("the time in %s is not tested", key)
		}
	}
	if diff := cmp.Diff(waits, Timestamps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
