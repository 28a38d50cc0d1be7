// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
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
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/settings"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Times that are invalid or in the future are set to now, in one pass, and nothing else is written.
func TestFixTimes(t *testing.T) {
	noon, future := timestamp.Format(fixture.Noon), timestamp.Format(fixture.Noon.Add(time.Hour))
	past := timestamp.Format(fixture.Noon.Add(-time.Hour))
	type entries = map[string]string
	for name, tc := range map[string]struct {
		machine, resource         entries // annotations
		wantMachine, wantResource entries // if they differ
		stale                     bool    // whether the Machine has changed since it was read
	}{
		"all are right": {
			machine:  entries{v1alpha1.MarkedForDeletionAtAnnotation: past, v1alpha1.SpareSinceAnnotation: noon},
			resource: entries{v1alpha1.ReplicasLoweredAtAnnotation: past},
		},
		"of a Machine": {
			machine:     entries{v1alpha1.MarkedForDeletionAtAnnotation: future, v1alpha1.SpareSinceAnnotation: "x", "mine": "x"},
			wantMachine: entries{v1alpha1.MarkedForDeletionAtAnnotation: noon, v1alpha1.SpareSinceAnnotation: noon, "mine": "x"},
		},
		"of the resource": {
			resource:     entries{v1alpha1.ReplicasLoweredAtAnnotation: "x", v1alpha1.ReplicasSetAtAnnotation: future, "mine": "x"},
			wantResource: entries{v1alpha1.ReplicasLoweredAtAnnotation: noon, v1alpha1.ReplicasSetAtAnnotation: noon, "mine": "x"},
		},
		"of a Machine that has changed": {machine: entries{v1alpha1.SpareSinceAnnotation: "x"}, wantMachine: entries{v1alpha1.SpareSinceAnnotation: "x"}, stale: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine, resource := fixture.OfMachineDeployment(fixture.Machine(time.Hour)), withReplicas(1)
			machine.Annotations, resource.Annotations = tc.machine, tc.resource
			management := fixture.Clusters(machine, resource).Management.GetClient()
			for _, object := range []client.Object{machine, resource} {
				if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
			}
			read := machine.DeepCopy()
			if tc.stale {
				machine.Labels["theirs"] = "x"
				if err := management.Update(t.Context(), machine); err != nil {
					t.Fatal(err)
				}
			}
			versions := machine.ResourceVersion + " " + resource.ResourceVersion
			clusters := fixture.Clusters()
			clusters.Management = fixture.Cluster{Client: management}
			snap := &decided{Snapshot: &snapshot.Snapshot{Resource: scalable.New(resource), Machines: map[string]*clusterv1.Machine{"m": read}, State: planner.State{Now: fixture.Noon}}}
			corrected, err := (&Reconciler{clusters: clusters}).fixTimes(t.Context(), snap)
			if apierrors.IsConflict(err) != tc.stale || err != nil && !tc.stale {
				t.Errorf("got %v", err)
			}
			if want := tc.wantMachine != nil || tc.wantResource != nil; corrected != want {
				t.Errorf("corrected: %t, want %t", corrected, want)
			}
			for _, object := range []client.Object{machine, resource} {
				if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
			}
			if !corrected && versions != machine.ResourceVersion+" "+resource.ResourceVersion {
				t.Error("something was written")
			}
			for _, got := range []struct{ want, got entries }{{lo.CoalesceMapOrEmpty(tc.wantMachine, tc.machine), machine.Annotations}, {lo.CoalesceMapOrEmpty(tc.wantResource, tc.resource), resource.Annotations}} {
				if diff := cmp.Diff(got.want, got.got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("annotations (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// A MachineSet that has changed since it was read keeps its replicas.
func TestMachineSetThatHasChanged(t *testing.T) {
	clusters := fixture.Clusters(fixture.MachineSet("a", "general", 2))
	sets, err := scalable.MachineSets(t.Context(), clusters, "general")
	if err != nil {
		t.Fatal(err)
	}
	changed := sets[0].DeepCopy()
	changed.Spec.Replicas = new(int32(5))
	if err := clusters.Management.GetClient().Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if err := (&Reconciler{clusters: clusters}).setMachineSetReplicas(t.Context(), &sets[0], 1); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// A marked Machine waits from the time of the mark, of the end of an outage, or of the last stall, whichever is last.
func TestLoweringTimeLeft(t *testing.T) {
	machine := fixture.Machine(time.Hour)
	machine.Annotations = map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: timestamp.Format(fixture.Noon.Add(-2 * time.Minute))}
	for name, tc := range map[string]struct {
		up, stalled time.Duration // before noon
		want        time.Duration
	}{
		"marked last":  {up: time.Hour, stalled: time.Hour, want: loweringTimeout - 2*time.Minute},
		"an outage":    {up: time.Minute, stalled: time.Hour, want: loweringTimeout - time.Minute},
		"a stall":      {up: time.Hour, stalled: time.Second, want: loweringTimeout - time.Second},
		"both, stall":  {up: time.Minute, stalled: time.Second, want: loweringTimeout - time.Second},
		"both, outage": {up: time.Second, stalled: time.Minute, want: loweringTimeout - time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{}
			r.memory.of("general").stalledAt, r.memory.of("other").stalledAt = fixture.Noon.Add(-tc.stalled), fixture.Noon
			snap := &decided{Snapshot: &snapshot.Snapshot{Name: "general", State: planner.State{Now: fixture.Noon, UpSince: fixture.Noon.Add(-tc.up)}}}
			if got := r.loweringTimeLeft(snap, machine); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A generated resource that has neither claims nor Machines expires after emptyTTLSeconds, from the time on the object.
func TestEmptySince(t *testing.T) {
	noon := timestamp.Format(fixture.Noon)
	at := func(age time.Duration) map[string]string {
		return map[string]string{v1alpha1.EmptySinceAnnotation: timestamp.Format(fixture.Noon.Add(-age))}
	}
	for name, tc := range map[string]struct {
		annotations     map[string]string
		claim, machine  bool
		noReplicas      bool
		want            emptiness
		wantAnnotations map[string]string
	}{
		"it becomes empty":          {want: emptiness{expiresIn: time.Minute}, wantAnnotations: map[string]string{v1alpha1.EmptySinceAnnotation: noon}},
		"it has been empty":         {annotations: at(20 * time.Second), want: emptiness{expiresIn: 40 * time.Second}, wantAnnotations: at(20 * time.Second)},
		"it expires":                {annotations: at(time.Minute), want: emptiness{expired: true}, wantAnnotations: at(time.Minute)},
		"its time is invalid":       {annotations: map[string]string{v1alpha1.EmptySinceAnnotation: "x"}, want: emptiness{expiresIn: time.Minute}, wantAnnotations: map[string]string{v1alpha1.EmptySinceAnnotation: noon}},
		"its time is in the future": {annotations: at(-time.Hour), want: emptiness{expiresIn: time.Minute}, wantAnnotations: map[string]string{v1alpha1.EmptySinceAnnotation: noon}},
		"a claim comes":             {annotations: at(time.Hour), claim: true},
		"a claim has no replicas":   {annotations: at(time.Hour), claim: true, noReplicas: true, wantAnnotations: at(time.Hour)},
		"its replicas are lowered":  {annotations: at(time.Hour), claim: true, machine: true, noReplicas: true},
		"it has a Machine":          {annotations: at(time.Hour), machine: true},
		"it is adopted":             {annotations: map[string]string{v1alpha1.AdoptedAnnotation: noon}, wantAnnotations: map[string]string{v1alpha1.AdoptedAnnotation: noon}},
		"other annotations stay":    {annotations: map[string]string{"mine": "x"}, claim: true, wantAnnotations: map[string]string{"mine": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := withReplicas(lo.Ternary[int32](tc.noReplicas, 0, 3))
			object.Annotations = tc.annotations
			snap := &decided{Snapshot: &snapshot.Snapshot{Settings: settings.Settings{EmptyTTL: time.Minute}, State: planner.State{Now: fixture.Noon}}}
			if tc.claim {
				snap.Claims = []karpv1.NodeClaim{*fixture.Claim(time.Minute)}
			}
			if tc.machine {
				snap.Machines = map[string]*clusterv1.Machine{"m": fixture.Machine(time.Minute)}
			}
			resource := scalable.New(object)
			got := setEmptySince(resource, snap)
			if got.expired != tc.want.expired || !got.expired && got.expiresIn != tc.want.expiresIn {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if diff := cmp.Diff(tc.wantAnnotations, resource.GetAnnotations(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// Only a surplus Machine of an adopted resource is reported: one that has never served a claim.
func TestReportSurplus(t *testing.T) {
	adopted := map[string]string{v1alpha1.AdoptedAnnotation: timestamp.Format(fixture.Noon)}
	for name, tc := range map[string]struct {
		resource, machine map[string]string // annotations
		linked, gone      bool
		want              int
	}{
		"a surplus Machine":           {resource: adopted, want: 1},
		"one that was spare":          {resource: adopted, machine: map[string]string{v1alpha1.SpareSinceAnnotation: timestamp.Format(fixture.Noon)}},
		"one that has served a claim": {resource: adopted, linked: true},
		"of a generated resource":     {},
		"of no resource":              {gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			told, machine, object := &published{}, fixture.Machine(time.Minute), withReplicas(1)
			machine.Annotations, object.Annotations = tc.machine, tc.resource
			if tc.linked {
				machine.Labels = map[string]string{v1alpha1.NodeClaimUIDLabel: "c"}
			}
			snap := &decided{Snapshot: &snapshot.Snapshot{Resource: scalable.New(object)}}
			if tc.gone {
				snap.Resource = nil
			}
			(&Reconciler{recorder: told}).reportSurplus(snap, machine)
			if len(*told) != tc.want {
				t.Errorf("got %d events, want %d", len(*told), tc.want)
			}
		})
	}
}

// While Cluster API refuses to create Machines of a resource, its waiting claims move to the resource that their
// offering has now.
func TestBlockedClaimsMove(t *testing.T) {
	for name, tc := range map[string]struct {
		message  string // of the MachineSet's condition ScalingUp
		offering string
		adopted  bool
		ends     bool // it is being deleted
		current  bool // its offering has this resource
		moves    bool
	}{
		"Cluster API refuses, and no other resource is offered": {message: "Scaling up from 0 to 1 replicas is blocked because:\n* version skew", offering: "small", current: true},
		"it is adopted, and is being deleted":                   {message: "Scaling up from 0 to 1 replicas", offering: "small", adopted: true, ends: true},
		"Cluster API refuses, and it is adopted":                {message: "Scaling up from 0 to 1 replicas is blocked because:\n* version skew", offering: "small", adopted: true},
		"Cluster API refuses":                                   {message: "Scaling up from 0 to 1 replicas is blocked because:\n* version skew", offering: "small", moves: true},
		"Cluster API creates Machines":                          {message: "Scaling up from 0 to 1 replicas", offering: "small"},
		"Cluster API refuses, and nothing offers":               {message: "Scaling up from 0 to 1 replicas is blocked because:\n* version skew", offering: "removed"},
	} {
		t.Run(name, func(t *testing.T) {
			served := fixture.Served
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
			deployment := withReplicas(1)
			deployment.Name = "general-old"
			if tc.current {
				unused := clustersWith(served, cluster, &[]string{}, cluster)
				launch, err := generate.LaunchOfClaim(t.Context(), unused, catalog.New(unused), launchedClaim(tc.offering))
				if err != nil {
					t.Fatal(err)
				}
				deployment = launch.Generated.Resource.API().(*clusterv1.MachineDeployment)
				deployment.Spec.Replicas = new(int32(1))
			}
			if tc.ends {
				deployment.DeletionTimestamp, deployment.Finalizers = new(metav1.NewTime(fixture.Noon)), []string{"x"}
			}
			deployment.Labels = lo.Assign(deployment.Labels, map[string]string{v1alpha1.InstanceTypeLabel: tc.offering, v1alpha1.CapacityTypeLabel: karpv1.CapacityTypeOnDemand})
			if tc.adopted {
				deployment.Annotations = map[string]string{v1alpha1.AdoptedAnnotation: timestamp.Format(fixture.Noon)}
			}
			set := fixture.MachineSet("set", deployment.Name, 1)
			conditions.Set(set, metav1.Condition{Type: clusterv1.MachineSetScalingUpCondition, Status: metav1.ConditionTrue, Reason: "ScalingUp", Message: tc.message})
			claim := launchedClaim(tc.offering)
			claim.CreationTimestamp, claim.Annotations[v1alpha1.ScalableResourceAnnotation] = metav1.NewTime(fixture.Noon), deployment.Name
			boots, machine := claim.DeepCopy(), fixture.OfMachineDeployment(fixture.Machine(time.Minute))
			boots.Name, boots.UID = "d", "d"
			machine.Namespace, machine.Labels[v1alpha1.NodeClaimUIDLabel] = served.Namespace, "d"
			machine.Labels[clusterv1.MachineDeploymentNameLabel] = deployment.Name
			clusters := clustersWith(served, cluster, &[]string{}, cluster, deployment, set, claim, boots, machine)
			r := newReconciler(clusters, catalog.New(clusters), &published{}, clocktesting.NewFakeClock(fixture.Noon))
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: deployment.Name}}); err != nil {
				t.Fatal(err)
			}
			if err := clusters.Workload.GetClient().Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			want := deployment.Name
			if tc.moves {
				want = generatedName(t, served, cluster)
			}
			if got := claim.Annotations[v1alpha1.ScalableResourceAnnotation]; got != want {
				t.Errorf("the claim names %s, want %s", got, want)
			}
			if _, written := claim.Annotations[v1alpha1.PriceAnnotation]; written != tc.moves {
				t.Errorf("got annotations %v, want those of a launch: %t", claim.Annotations, tc.moves)
			}
			if err := clusters.Workload.GetClient().Get(t.Context(), client.ObjectKeyFromObject(boots), boots); err != nil || boots.Annotations[v1alpha1.ScalableResourceAnnotation] != deployment.Name {
				t.Errorf("the claim whose Machine boots names %s (%v)", boots.Annotations[v1alpha1.ScalableResourceAnnotation], err)
			}
		})
	}
}

// Without its template, a waiting claim has no other resource.
func TestClaimsWithoutATemplateDoNotMove(t *testing.T) {
	claim := launchedClaim("small")
	clusters := fixture.Clusters(claim)
	r := newReconciler(clusters, catalog.New(clusters), &published{}, clocktesting.NewFakeClock(fixture.Noon))
	snap := decide(&snapshot.Snapshot{Name: "general", Ending: true, Resource: scalable.New(withReplicas(1)), Claims: []karpv1.NodeClaim{*claim}, State: planner.State{Now: fixture.Noon}})
	if err := r.moveWaiting(t.Context(), snap); err != nil {
		t.Error(err)
	}
}

// A MachineDeployment is adopted for the first claim that names it, unless it is of another Cluster, paused or
// being deleted.
func TestAdoption(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*clusterv1.MachineDeployment)
		cluster func(*clusterv1.Cluster)
		claim   string // the instance type of its claim; none if empty
		adopted bool   // before
		want    bool
	}{
		"it is offered":            {claim: "existing", want: true},
		"of the served Cluster":    {change: func(d *clusterv1.MachineDeployment) { d.Spec.ClusterName = fixture.Served.Name }, claim: "existing", want: true},
		"of another Cluster":       {change: func(d *clusterv1.MachineDeployment) { d.Spec.ClusterName = "neighbour" }, claim: "existing"},
		"paused by its annotation": {change: func(d *clusterv1.MachineDeployment) { d.Annotations[clusterv1.PausedAnnotation] = "" }, claim: "existing"},
		"paused in its spec":       {change: func(d *clusterv1.MachineDeployment) { d.Spec.Paused = new(true) }, claim: "existing"},
		"used already":             {change: func(d *clusterv1.MachineDeployment) { d.Labels[v1alpha1.TemplateLabel] = "general" }, claim: "existing"},
		"adopted already": {change: func(d *clusterv1.MachineDeployment) {
			d.Labels = lo.Assign(d.Labels, map[string]string{v1alpha1.TemplateLabel: "general", v1alpha1.InstanceTypeLabel: "existing", v1alpha1.CapacityTypeLabel: karpv1.CapacityTypeOnDemand})
			d.Annotations[v1alpha1.AdoptedAnnotation] = timestamp.Format(fixture.Noon)
		}, claim: "existing", adopted: true},
		"being deleted": {change: func(d *clusterv1.MachineDeployment) {
			d.DeletionTimestamp, d.Finalizers = new(metav1.NewTime(fixture.Noon)), []string{"x/y"}
		}, claim: "existing"},
		"the Cluster is paused":            {cluster: func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) }, claim: "existing"},
		"no claim names it":                {},
		"a claim of another offering":      {claim: "small"},
		"without consent":                  {change: func(d *clusterv1.MachineDeployment) { delete(d.Annotations, v1alpha1.AdoptableAnnotation) }, claim: "existing"},
		"what the template does not offer": {change: func(d *clusterv1.MachineDeployment) { delete(d.Labels, "discover") }, claim: "existing"},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := existing()
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			if tc.change != nil {
				tc.change(deployment)
			}
			if tc.cluster != nil {
				tc.cluster(cluster)
			}
			objects := []client.Object{cluster, deployment}
			if tc.claim != "" {
				claim := launchedClaim(tc.claim)
				claim.Annotations[v1alpha1.ScalableResourceAnnotation] = deployment.Name
				objects = append(objects, claim)
			}
			clusters := clustersWith(fixture.Served, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}, &[]string{}, objects...)
			r := newReconciler(clusters, catalog.New(clusters), silent{}, clocktesting.NewFakeClock(fixture.Noon))
			got, err := r.adopt(t.Context(), deployment.Name)
			if err != nil || got != tc.want {
				t.Errorf("adopted: %t (%v), want %t", got, err, tc.want)
			}
			if err := clusters.Management.GetClient().Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil || scalable.Adopted(deployment) != (tc.want || tc.adopted) {
				t.Errorf("got %v and %v, want that it is adopted: %t", err, deployment.Annotations, tc.want || tc.adopted)
			}
		})
	}
}

// The claim of a Machine's link is read from the API server before the Machine is separated from it. Whether the
// claim keeps the Machine depends on what the API server has.
func TestStillServes(t *testing.T) {
	for name, tc := range map[string]struct {
		claim  func(*karpv1.NodeClaim) // nil if it does not exist
		link   func(*clusterv1.Machine)
		first  func(*clusterv1.Machine) // the other Machine, in the API server
		absent bool                     // the API server lacks the other Machine
		alone  bool                     // the plan knows no other Machine of the claim
		want   bool
	}{
		"the claim no longer exists":        {},
		"another claim has its name":        {claim: func(c *karpv1.NodeClaim) { c.UID = "again" }},
		"it has no link":                    {claim: func(*karpv1.NodeClaim) {}, link: func(m *clusterv1.Machine) { delete(m.Labels, v1alpha1.NodeClaimUIDLabel) }},
		"it has lost the name of its claim": {claim: func(*karpv1.NodeClaim) {}, link: func(m *clusterv1.Machine) { delete(m.Annotations, v1alpha1.NodeClaimAnnotation) }},
		"the claim names another resource":  {claim: func(c *karpv1.NodeClaim) { c.Annotations[v1alpha1.ScalableResourceAnnotation] = "other" }},
		"the claim has no other Machine":    {claim: func(*karpv1.NodeClaim) {}, alone: true, want: true},
		"another Machine serves the claim":  {claim: func(*karpv1.NodeClaim) {}},
		"the claim has its provider ID":     {claim: func(c *karpv1.NodeClaim) { c.Status.ProviderID = "sim://m" }, want: true},
		"the other Machine leaves": {claim: func(*karpv1.NodeClaim) {}, first: func(m *clusterv1.Machine) {
			m.Annotations[v1alpha1.MarkedForDeletionAtAnnotation] = timestamp.Format(fixture.Noon)
		}, want: true},
		"the other Machine is linked to another":       {claim: func(*karpv1.NodeClaim) {}, first: func(m *clusterv1.Machine) { m.Labels[v1alpha1.NodeClaimUIDLabel] = "d" }, want: true},
		"the other Machine is not the one of the plan": {claim: func(*karpv1.NodeClaim) {}, first: func(m *clusterv1.Machine) { m.UID = "again" }, want: true},
		"the other Machine no longer exists":           {claim: func(*karpv1.NodeClaim) {}, absent: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(name string) *clusterv1.Machine {
				m := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
				m.Name, m.UID, m.Spec.ProviderID = name, types.UID(name), "sim://"+name
				m.Labels[v1alpha1.NodeClaimUIDLabel], m.Annotations = "c", map[string]string{v1alpha1.NodeClaimAnnotation: "c"}
				return m
			}
			machine, first := of("m"), of("first")
			stored := first.DeepCopy()
			if tc.link != nil {
				tc.link(machine)
			}
			if tc.first != nil {
				tc.first(stored)
			}
			objects := []client.Object{machine}
			if !tc.absent {
				objects = append(objects, stored)
			}
			if tc.claim != nil {
				claim := fixture.Claim(time.Minute)
				claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "general"}
				tc.claim(claim)
				objects = append(objects, claim)
			}
			snap := &decided{Snapshot: &snapshot.Snapshot{Name: "general", Machines: map[string]*clusterv1.Machine{"first": first, "m": machine}}}
			if snap.Plan.Served = map[types.UID]string{"c": "first"}; tc.alone {
				snap.Plan.Served = nil
			}
			got, err := (&Reconciler{clusters: fixture.Clusters(objects...)}).stillServes(t.Context(), snap, machine)
			if err != nil || got != tc.want {
				t.Errorf("got %t (%v), want %t", got, err, tc.want)
			}
		})
	}
}

// Lower replicas are written at once, higher ones at a pace.
func TestOnlyRaisesHaveAPace(t *testing.T) {
	object := withReplicas(1)
	clusters := fixture.Clusters(object, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}})
	management := clusters.Management.GetClient()
	clock := clocktesting.NewFakeClock(fixture.Noon)
	r := newReconciler(clusters, nil, silent{}, clock)
	for _, step := range []struct {
		to, want int32
		waits    bool
		burst    bool // claims come
	}{{to: 2, want: 1, waits: true, burst: true}, {to: 2, want: 2}, {to: 3, want: 2, waits: true}, {to: 1, want: 1, burst: true}} {
		if step.burst {
			r.spacing.Arrive("", "general")
		} else {
			clock.Step(200 * time.Millisecond)
		}
		if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		snap := &decided{Snapshot: &snapshot.Snapshot{Name: "general", Resource: scalable.New(object), Machines: map[string]*clusterv1.Machine{"m": fixture.Machine(time.Minute)}, State: planner.State{Now: fixture.Noon}}}
		snap.Plan.Replicas = step.to
		result, err := r.update(t.Context(), snap)
		if err != nil || (result.RequeueAfter > 0) != step.waits {
			t.Errorf("to %d: got %+v and %v, want a wait: %t", step.to, result, err, step.waits)
		}
		after := withReplicas(0)
		if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), after); err != nil || *after.Spec.Replicas != step.want {
			t.Errorf("to %d: got %d replicas (%v), want %d", step.to, *after.Spec.Replicas, err, step.want)
		}
	}
	if got := r.memory.of("general").pace; len(got) != 1 || got[0].by != 1 {
		t.Errorf("got the raises %+v, want one by 1", got)
	}
	// That it is empty is written at once, too.
	if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	snap := &decided{Snapshot: &snapshot.Snapshot{Name: "general", Resource: scalable.New(object), State: planner.State{Now: fixture.Noon}}}
	snap.Plan.Replicas, snap.Settings.EmptyTTL = *object.Spec.Replicas, time.Minute
	if _, err := r.update(t.Context(), snap); err != nil {
		t.Fatal(err)
	}
	if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.Annotations[v1alpha1.EmptySinceAnnotation] == "" {
		t.Errorf("got annotations %v and %v, want the time since which it is empty", object.Annotations, err)
	}
}

// The creation of a resource is a raise. The pace ends with the resource.
func TestPaceOfACreatedResource(t *testing.T) {
	served := fixture.Served
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
	claim, name := launchedClaim("small"), generatedName(t, served, cluster)
	claim.CreationTimestamp, claim.Annotations[v1alpha1.ScalableResourceAnnotation] = metav1.NewTime(fixture.Noon), name
	clusters := clustersWith(served, cluster, &[]string{}, cluster, claim)
	clock := clocktesting.NewFakeClock(fixture.Noon)
	r := newReconciler(clusters, catalog.New(clusters), &published{}, clock)
	r.memory.of(name).pace.note(fixture.Noon, 500) // of an earlier resource of that name
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	r.spacing.Arrive("", name)
	result, err := r.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter == 0 {
		t.Fatalf("got %+v and %v, want to wait for further claims", result, err)
	}
	clock.Step(result.RequeueAfter)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if wait := r.memory.of(name).pace.wait(clock.Now()); wait != minPace {
		t.Errorf("after the creation, a raise waits %s, want %s", wait, minPace)
	}
}

// A Machine of a pool that has lost its instance never becomes a Node, so it is marked for deletion.
func TestLostMachineIsMarked(t *testing.T) {
	for name, tc := range map[string]struct {
		instance string
		fails    bool // the mark cannot be written
		want     bool
	}{
		"its instance exists":           {instance: "workers"},
		"it has lost it":                {instance: "none", want: true},
		"it has lost it, and no answer": {instance: "none", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "general", Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}}
			pool.Spec.Replicas, pool.Spec.Template.Spec.InfrastructureRef = new(int32(1)), *template().Spec.Template.Spec.InfrastructureRef
			machine := fixture.Machine(time.Minute)
			machine.Namespace, machine.Finalizers = fixture.Served.Namespace, []string{clusterv1.MachineFinalizer}
			machine.Labels = map[string]string{clusterv1.MachinePoolNameLabel: "general", v1alpha1.TemplateLabel: "general", v1alpha1.NodeClaimUIDLabel: "c"}
			machine.Annotations = map[string]string{v1alpha1.NodeClaimAnnotation: "c"}
			machine.Spec.InfrastructureRef = *template().Spec.Template.Spec.InfrastructureRef
			machine.Spec.InfrastructureRef.Name = tc.instance
			claim := launchedClaim("small")
			claim.Annotations[v1alpha1.ScalableResourceAnnotation] = "general"
			clusters := clustersWith(fixture.Served, cluster, &[]string{}, cluster, pool, machine, claim)
			inner := clusters.Management.GetClient().(client.WithWatch)
			clusters.Management = fixture.Cluster{Client: interceptor.NewClient(inner, interceptor.Funcs{ // the instance is read from the API server, too
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if _, is := object.(*clusterv1.Machine); is && tc.fails {
						return errors.New("no answer")
					}
					return c.Patch(ctx, object, patch, options...)
				},
			})}
			r := newReconciler(clusters, catalog.New(clusters), &published{}, clocktesting.NewFakeClock(fixture.Noon))
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}}); (err != nil) != tc.fails {
				t.Fatalf("got %v, want an error: %t", err, tc.fails)
			}
			after := &clusterv1.Machine{}
			if err := clusters.Management.GetClient().Get(t.Context(), client.ObjectKeyFromObject(machine), after); err != nil || lifecycle.IsMarked(after) != tc.want {
				t.Errorf("got %v and %v, want that it is marked: %t", err, after.Annotations, tc.want)
			}
		})
	}
}

// A resource is written again if its replicas differ, were never set, or the time since which it is empty differs.
func TestEqual(t *testing.T) {
	empty := withReplicas(1)
	empty.Annotations = map[string]string{v1alpha1.EmptySinceAnnotation: timestamp.Format(fixture.Noon)}
	unset := withReplicas(0)
	unset.Spec.Replicas = nil
	for name, tc := range map[string]struct {
		a, b *clusterv1.MachineDeployment
		want bool
	}{
		"the same":                   {a: withReplicas(1), b: withReplicas(1), want: true},
		"the same, and both empty":   {a: empty, b: empty, want: true},
		"other replicas":             {a: withReplicas(1), b: withReplicas(2)},
		"replicas that were not set": {a: unset, b: withReplicas(0)},
		"it becomes empty":           {a: withReplicas(1), b: empty},
		"it is no longer empty":      {a: empty, b: withReplicas(1)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := equal(scalable.New(tc.a), scalable.New(tc.b)); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// Lower replicas that cannot be written reject no claim: the error is returned.
func TestReplicasThatCannotBeLowered(t *testing.T) {
	object := withReplicas(2)
	clusters := fixture.Clusters(object)
	inner := clusters.Management.GetClient().(client.WithWatch)
	clusters.Management = fixture.Cluster{Client: interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("too few"))
		},
	})}
	claim := launchedClaim("small")
	snap := decide(&snapshot.Snapshot{Name: "general", Resource: scalable.New(object), Claims: []karpv1.NodeClaim{*claim}, State: planner.State{Now: fixture.Noon}})
	snap.Plan.Replicas = 1
	r := newReconciler(clusters, nil, silent{}, clocktesting.NewFakeClock(fixture.Noon))
	if result, err := r.update(t.Context(), snap); !apierrors.IsForbidden(err) {
		t.Errorf("got %+v and %v, want the error", result, err)
	}
}

// A spare Machine and a waiting claim are due at times that no event announces.
func TestReconcileIsDueWithItsMachines(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
	machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
	machine.Namespace, machine.Labels[clusterv1.MachineDeploymentNameLabel] = fixture.Served.Namespace, "general"
	clusters := clustersWith(fixture.Served, cluster, &[]string{}, cluster, withReplicas(1), machine)
	r := newReconciler(clusters, catalog.New(clusters), &published{}, clocktesting.NewFakeClock(fixture.Noon))
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}})
	if err != nil || result.RequeueAfter <= 0 {
		t.Errorf("the next reconcile is due in %s (%v)", result.RequeueAfter, err)
	}
}
