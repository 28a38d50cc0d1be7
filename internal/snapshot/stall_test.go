// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
)

const upgrading = `Scaling up from 3 to 4 replicas is blocked because:
* ControlPlane clusters/prod is upgrading ("ControlPlaneIsStable" preflight check failed)
* SimulatedMachineTemplate does not exist`

// deployment returns a MachineDeployment that Cluster API has acted on.
func deployment(replicas int32) *clusterv1.MachineDeployment {
	object := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "general", Generation: 5}}
	object.Spec.Replicas, object.Status.ObservedGeneration = &replicas, 5
	return object
}

// notCreated returns a MachineSet that has not observed its generation, and reports message.
func notCreated(set *clusterv1.MachineSet, message string) *clusterv1.MachineSet {
	set.Status.ObservedGeneration--
	if message != "" {
		set.Status.Deprecated = &clusterv1.MachineSetDeprecatedStatus{V1Beta1: &clusterv1.MachineSetV1Beta1DeprecatedStatus{
			Conditions: clusterv1.Conditions{{Type: clusterv1.MachinesCreatedV1Beta1Condition, Status: "False", Reason: "x", Message: message}}, //nolint:staticcheck // No other field has it.
		}}
	}
	return set
}

func TestStallOf(t *testing.T) {
	behind, deleted := deployment(4), deployment(4)
	behind.Generation++
	deleted.Generation++
	deleted.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
	withoutV1Beta1 := notCreated(fixture.MachineSet("a", "general", 4), "")
	withoutV1Beta1.Status.Deprecated = &clusterv1.MachineSetDeprecatedStatus{}
	created, otherProblem := notCreated(fixture.MachineSet("a", "general", 4), "1 of 4 created"), notCreated(fixture.MachineSet("a", "general", 4), "no answer")
	created.Status.Deprecated.V1Beta1.Conditions[0].Status = "True" //nolint:staticcheck // No other field has it.
	reported := otherProblem.Status.Deprecated.V1Beta1
	reported.Conditions = append(clusterv1.Conditions{{Type: clusterv1.ResizedV1Beta1Condition, Status: "False", Message: "resizing"}}, reported.Conditions...) //nolint:staticcheck // As above.
	for name, tc := range map[string]struct {
		deployment *clusterv1.MachineDeployment
		set        *clusterv1.MachineSet
		want       *Stall
	}{
		"Cluster API creates Machines": {deployment: deployment(4), set: scalingUp(fixture.MachineSet("a", "general", 4), "Scaling up from 3 to 4 replicas")},
		"nothing to create":            {deployment: deployment(4), set: fixture.MachineSet("a", "general", 4)},
		"it would be blocked":          {deployment: deployment(4), set: scalingUp(fixture.MachineSet("a", "general", 4), "Scaling up would be blocked because X does not exist")},
		"a MachineDeployment is new":   {deployment: behind, want: noProgress("Cluster API has not acted on MachineDeployment clusters/general: check that its controllers run")},
		"it is being deleted":          {deployment: deleted, want: noProgress("MachineDeployment clusters/general is being deleted and creates no Machines: wait until its Machines no longer exist")},
		"no MachineSet exists":         {deployment: deployment(4), want: noProgress("Cluster API has created no MachineSet for MachineDeployment clusters/general: check that its controllers run")},
		"preflight checks fail": {deployment: deployment(4), set: scalingUp(fixture.MachineSet("a", "general", 4), upgrading), want: &Stall{v1alpha1.ReasonBlocked,
			`MachineSet clusters/a creates no Machines: ControlPlane clusters/prod is upgrading ("ControlPlaneIsStable" preflight check failed); SimulatedMachineTemplate does not exist`}},
		"the MachineSet is new": {deployment: deployment(4), set: notCreated(fixture.MachineSet("a", "general", 4), ""),
			want: noProgress("Cluster API has not acted on MachineSet clusters/a: check that its controllers run")},
		"a webhook does not answer": {deployment: deployment(4), set: notCreated(fixture.MachineSet("a", "general", 4), `failed calling webhook "x": connection refused`),
			want: noProgress(`MachineSet clusters/a cannot create Machines: failed calling webhook "x": connection refused`)},
		"it cannot create Machines, of which the older API version reports nothing": {deployment: deployment(4), set: withoutV1Beta1,
			want: noProgress("Cluster API has not acted on MachineSet clusters/a: check that its controllers run")},
		"it has created Machines before": {deployment: deployment(4), set: created,
			want: noProgress("Cluster API has not acted on MachineSet clusters/a: check that its controllers run")},
		"another problem is reported first": {deployment: deployment(4), set: otherProblem,
			want: noProgress("MachineSet clusters/a cannot create Machines: no answer")},
		"a webhook rejects Machines": {deployment: deployment(4), set: notCreated(fixture.MachineSet("a", "general", 4), `admission webhook "x" denied the request: no such type`)},
	} {
		t.Run(name, func(t *testing.T) {
			var sets []clusterv1.MachineSet
			if tc.set != nil {
				sets = append(sets, *tc.set)
			}
			got := stallOf(tc.deployment, sets)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			s := &Snapshot{stall: got}
			if blocked := tc.want != nil && tc.want.Reason == v1alpha1.ReasonBlocked; s.Stalled() != (tc.want != nil) || s.Blocked() != blocked {
				t.Errorf("stalled: %t, want %t; blocked: %t, want %t", s.Stalled(), tc.want != nil, s.Blocked(), blocked)
			}
		})
	}
}

// A MachineSet is blocked only if it has certainly created no Machine for its present replicas.
func TestBlocked(t *testing.T) {
	probed := fixture.Noon.Add(-operator.ProductionTimings().Probe)
	going := counts(scalingUp(fixture.MachineSet("a", "general", 4), upgrading), 3)
	going.DeletionTimestamp, going.Finalizers = new(metav1.NewTime(fixture.Noon)), []string{clusterv1.MachineSetFinalizer}
	lowered := func(at time.Time) *clusterv1.MachineDeployment {
		object := deployment(4)
		object.Annotations = map[string]string{v1alpha1.ReplicasLoweredAtAnnotation: timestamp.Format(at)}
		return object
	}
	for name, tc := range map[string]struct {
		deployment *clusterv1.MachineDeployment
		set        *clusterv1.MachineSet
		want       planner.MachineSet
		dueIn      time.Duration
	}{
		"it is being deleted":                     {deployment: deployment(4), set: going, want: planner.MachineSet{}},
		"certainly":                               {deployment: deployment(4), set: counts(scalingUp(fixture.MachineSet("a", "general", 4), upgrading), 3), want: planner.MachineSet{Replicas: 4, Blocked: true}},
		"it may have created some before":         {deployment: deployment(4), set: counts(scalingUp(fixture.MachineSet("a", "general", 5), upgrading), 4), want: planner.MachineSet{Replicas: 5}},
		"it counts Machines that the cache lacks": {deployment: deployment(4), set: counts(scalingUp(fixture.MachineSet("a", "general", 4), upgrading), 4), want: planner.MachineSet{Replicas: 4}},
		"it has not observed its replicas":        {deployment: deployment(4), set: counts(notCreated(scalingUp(fixture.MachineSet("a", "general", 4), upgrading), ""), 3), want: planner.MachineSet{Replicas: 4, Behind: true}},
		"it has the replicas of before":           {deployment: deployment(4), set: counts(scalingUp(fixture.MachineSet("a", "general", 5), upgrading), 3), want: planner.MachineSet{Replicas: 5}},
		"it creates Machines":                     {deployment: deployment(4), set: counts(scalingUp(fixture.MachineSet("a", "general", 4), "Scaling up from 3 to 4 replicas"), 3), want: planner.MachineSet{Replicas: 4}},
		"replicas were lowered now":               {deployment: lowered(fixture.Noon), set: counts(fixture.MachineSet("a", "general", 4), 3), want: planner.MachineSet{Replicas: 4, Lowered: true}, dueIn: 15 * time.Second},
		"replicas were lowered 15 seconds ago":    {deployment: lowered(probed), set: counts(fixture.MachineSet("a", "general", 4), 3), want: planner.MachineSet{Replicas: 4, Lowered: true, Probe: true}},
		"lowered 15 seconds ago, not passed on":   {deployment: lowered(probed), set: counts(fixture.MachineSet("a", "general", 5), 3), want: planner.MachineSet{Replicas: 5, Lowered: true}},
		"lowered 15 seconds ago, not acted on":    {deployment: lowered(probed), set: counts(notCreated(fixture.MachineSet("a", "general", 4), ""), 3), want: planner.MachineSet{Replicas: 4, Behind: true, Lowered: true}},
	} {
		t.Run(name, func(t *testing.T) {
			snap := &Snapshot{Name: "general", Now: fixture.Noon, Settings: durations, Resource: scalable.New(tc.deployment),
				Machines: map[string]*clusterv1.Machine{"1": fixture.Machine(0), "2": fixture.Machine(0), "3": fixture.Machine(0)}}
			if err := snap.loadMachineSets(t.Context(), fixture.Clusters(tc.set)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(planner.Scaling(tc.want), snap.scaling); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			snap.Machines = nil
			if got := snap.DueIn(); got != tc.dueIn {
				t.Errorf("due in %s, want %s", got, tc.dueIn)
			}
		})
	}
}

func TestScale(t *testing.T) {
	at := timestamp.Format(fixture.Noon)
	before := timestamp.Format(fixture.Noon.Add(-time.Minute))
	for name, tc := range map[string]struct {
		set      planner.MachineSet
		lowered  string
		replicas int32
		want     string
	}{
		"lowered because it is blocked":      {set: planner.MachineSet{Blocked: true}, replicas: 3, want: at},
		"lowered because a Machine leaves":   {replicas: 3},
		"raised while it is blocked":         {set: planner.MachineSet{Blocked: true}, lowered: before, replicas: 5},
		"lowered again":                      {set: planner.MachineSet{Lowered: true}, lowered: before, replicas: 3, want: before},
		"lowered again, when a probe is due": {set: planner.MachineSet{Lowered: true, Probe: true}, lowered: before, replicas: 3, want: before},
		"raised, before a probe is due":      {set: planner.MachineSet{Lowered: true}, lowered: before, replicas: 5, want: before},
		"raised while it is blocked again":   {set: planner.MachineSet{Lowered: true, Blocked: true}, lowered: before, replicas: 5},
		"raised, with a time of before":      {lowered: before, replicas: 5},
		"lowered, with a time of before":     {lowered: before, replicas: 3},
		"raised as a probe":                  {set: planner.MachineSet{Lowered: true, Probe: true}, lowered: before, replicas: 5},
		"unchanged, which changes no time":   {set: planner.MachineSet{Lowered: true, Probe: true}, lowered: before, replicas: 4, want: before},
		"unchanged, while it is blocked":     {set: planner.MachineSet{Blocked: true}, replicas: 4},
	} {
		t.Run(name, func(t *testing.T) {
			object := deployment(4)
			if tc.lowered != "" {
				object.Annotations = map[string]string{v1alpha1.ReplicasLoweredAtAnnotation: tc.lowered}
			}
			resource := scalable.New(object)
			(&Snapshot{Now: fixture.Noon, scaling: tc.set, Plan: planner.Plan{Replicas: tc.replicas}}).Scale(resource)
			if got := resource.GetAnnotations()[v1alpha1.ReplicasLoweredAtAnnotation]; got != tc.want || resource.Replicas() != tc.replicas {
				t.Errorf("got %d replicas, lowered at %q; want %d and %q", resource.Replicas(), got, tc.replicas, tc.want)
			}
		})
	}
}

// A claim whose launch is stalled does not fail, because its offering was not tried.
func TestStallIsNoFailure(t *testing.T) {
	blocked := &Stall{v1alpha1.ReasonBlocked, "upgrading"}
	stands := noProgress("nothing acts")
	condition := func(age time.Duration, reason string, since time.Duration) *karpv1.NodeClaim {
		claim := fixture.Claim(age)
		claim.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, reason, "why")
		for i := range claim.Status.Conditions {
			if claim.Status.Conditions[i].Type == v1alpha1.ConditionMachineAvailable {
				claim.Status.Conditions[i].LastTransitionTime = metav1.NewTime(fixture.Noon.Add(-since))
			}
		}
		return claim
	}
	ends := func(claim *karpv1.NodeClaim) *karpv1.NodeClaim {
		claim.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
		return claim
	}
	launched := func(age, since time.Duration) *karpv1.NodeClaim {
		claim := fixture.Claim(age)
		for i := range claim.Status.Conditions {
			claim.Status.Conditions[i].LastTransitionTime = metav1.NewTime(fixture.Noon.Add(-since))
		}
		return claim
	}
	for name, tc := range map[string]struct {
		claim     *karpv1.NodeClaim
		machine   *clusterv1.Machine
		halt      *Stall
		noneYet   bool
		unasked   bool
		leaving   bool // a Machine of the claim
		short     bool // launchTimeoutSeconds
		want      *Stall
		wantFails bool
	}{
		"not stalled":                                   {claim: fixture.Claim(time.Hour), wantFails: true},
		"blocked":                                       {claim: fixture.Claim(time.Hour), halt: blocked, want: blocked},
		"blocked from the start":                        {claim: fixture.Claim(time.Second), halt: blocked, want: blocked},
		"no progress":                                   {claim: fixture.Claim(time.Hour), halt: stands, want: stands},
		"no progress for 29 seconds":                    {claim: fixture.Claim(29 * time.Second), halt: stands},
		"no progress for 30 seconds":                    {claim: fixture.Claim(30 * time.Second), halt: stands, want: stands},
		"no progress of its Machine":                    {claim: fixture.Claim(time.Hour), machine: fixture.Machine(time.Hour), halt: stands, want: stands},
		"resumed, which the claim does not show yet":    {claim: condition(time.Hour, v1alpha1.ReasonBlocked, time.Hour)},
		"resumed a minute ago":                          {claim: condition(time.Hour, v1alpha1.ReasonResumed, time.Minute)},
		"resumed a minute ago, with a Machine":          {claim: condition(time.Hour, v1alpha1.ReasonResumed, time.Minute), machine: fixture.Machine(time.Hour)},
		"resumed 10 minutes ago, without a Machine":     {claim: condition(time.Hour, v1alpha1.ReasonResumed, 10*time.Minute), wantFails: true},
		"resumed 10 minutes ago, without a provider ID": {claim: condition(time.Hour, v1alpha1.ReasonResumed, 10*time.Minute), machine: fixture.Machine(time.Hour), wantFails: true},
		"resumed before its Machine was created":        {claim: condition(2*time.Hour, v1alpha1.ReasonResumed, time.Hour), machine: fixture.Machine(time.Minute)},
		"relaunched a minute ago, with an old Machine":  {claim: condition(time.Hour, v1alpha1.ReasonOfferingChanged, time.Minute), machine: fixture.Machine(time.Hour), wantFails: true},
		"created a minute ago, by another clock":        {claim: condition(time.Minute, v1alpha1.ReasonResumed, time.Hour)},
		"launched a minute ago":                         {claim: launched(time.Hour, time.Minute)},
		"no resource was created yet":                   {claim: fixture.Claim(time.Hour), noneYet: true, halt: stands, want: stands},
		"a resource was rejected a minute ago":          {claim: condition(time.Hour, v1alpha1.ReasonRejected, time.Minute), noneYet: true, halt: stands},
		"it is being deleted":                           {claim: ends(fixture.Claim(time.Hour)), halt: stands},
		"its Machine leaves":                            {claim: fixture.Claim(time.Hour), leaving: true, halt: stands},
		"raised replicas were rejected before":          {claim: condition(time.Hour, v1alpha1.ReasonRejected, 10*time.Minute), halt: stands, want: stands},
		"no progress for a launchTimeoutSeconds of 10":  {claim: fixture.Claim(10 * time.Second), short: true, halt: stands, want: stands},
		"replicas are not raised yet":                   {claim: fixture.Claim(29 * time.Second), unasked: true},
		"replicas could not be raised":                  {claim: fixture.Claim(time.Hour), unasked: true, want: noProgress("the replicas of MachineDeployment clusters/general could not be set to 2: see the log of the operator")},
		"replicas could not be raised, and blocked":     {claim: fixture.Claim(time.Hour), unasked: true, halt: blocked, want: blocked},
		"raised replicas are rejected":                  {claim: condition(time.Hour, v1alpha1.ReasonRejected, time.Minute), unasked: true},
		"raised replicas were rejected 10 minutes ago":  {claim: condition(time.Hour, v1alpha1.ReasonRejected, 10*time.Minute), unasked: true, wantFails: true},
		"a resource was rejected 10 minutes ago":        {claim: condition(time.Hour, v1alpha1.ReasonRejected, 10*time.Minute), noneYet: true, halt: stands, wantFails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Snapshot{Now: fixture.Noon, Settings: durations, Machines: map[string]*clusterv1.Machine{}, failed: map[string]*failure.Failure{}, machineStalls: map[string]*Stall{}}
			s.Plan.Served = map[types.UID]string{}
			if !tc.noneYet {
				s.Resource, s.Plan.Replicas = scalable.New(deployment(1)), 1
			}
			if tc.unasked {
				s.Plan.Replicas = 2
			}
			if tc.short {
				s.Settings.LaunchTimeout = 10 * time.Second
			}
			if tc.leaving {
				machine := fixture.Machine(time.Hour)
				machine.Labels, machine.DeletionTimestamp = map[string]string{v1alpha1.NodeClaimUIDLabel: "c"}, new(metav1.NewTime(fixture.Noon))
				s.Machines["leaving"] = machine
			}
			if tc.machine != nil {
				s.Machines["m"], s.Plan.Served["c"], s.machineStalls["m"] = tc.machine, "m", tc.halt
			} else {
				s.stall = tc.halt
			}
			if diff := cmp.Diff(tc.want, s.whyStalled(tc.claim)); diff != "" {
				t.Errorf("stall (-want +got):\n%s", diff)
			}
			if failed := s.failureFor(tc.claim); (failed != nil) != tc.wantFails {
				t.Errorf("failure: got %+v, want one: %t", failed, tc.wantFails)
			}
		})
	}
}

func TestMachineStall(t *testing.T) {
	instance := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		object := fixture.Instance()
		delete(object.Object, "status")
		change(object)
		return object
	}
	seen := func(change func(*clusterv1.Machine)) *clusterv1.Machine {
		machine := fixture.Machine(time.Hour)
		machine.Namespace = "clusters"
		machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AzureMachinePoolMachine", Name: "m"}
		conditions.Set(machine, metav1.Condition{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "NotReady"})
		change(machine)
		return machine
	}
	same, asItIs := func(*clusterv1.Machine) {}, func(*unstructured.Unstructured) {}
	for name, tc := range map[string]struct {
		machine  *clusterv1.Machine
		instance *unstructured.Unstructured
		want     *Stall
	}{
		"Cluster API has not acted": {machine: seen(func(m *clusterv1.Machine) { m.Status.Conditions = nil }), instance: instance(asItIs),
			want: noProgress("Cluster API has not acted on Machine clusters/m: check that its controllers run")},
		"the provider has not acted": {machine: seen(same), instance: instance(asItIs),
			want: noProgress("the infrastructure provider has not acted on AzureMachinePoolMachine m of Machine clusters/m: check that it runs")},
		"the provider has a finalizer": {machine: seen(same), instance: instance(func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"azure"}) })},
		"the provider has a status":    {machine: seen(same), instance: instance(func(o *unstructured.Unstructured) { o.Object["status"] = fixture.YAML(t, `{phase: Creating}`) })},
		"Cluster API has not noticed": {machine: seen(same), instance: instance(func(o *unstructured.Unstructured) {
			o.Object["spec"], o.Object["status"] = fixture.YAML(t, `{providerID: azure://m}`), fixture.YAML(t, `{initialization: {provisioned: true}}`)
		}), want: noProgress("Cluster API has not noticed that AzureMachinePoolMachine m of Machine clusters/m is provisioned: check that its controllers run")},
		"it is provisioned, and its ID is missing": {machine: seen(same), instance: instance(func(o *unstructured.Unstructured) {
			o.Object["status"] = fixture.YAML(t, `{initialization: {provisioned: true}}`)
		})},
		"it has an ID, and is being provisioned": {machine: seen(same), instance: instance(func(o *unstructured.Unstructured) {
			o.Object["spec"], o.Object["status"] = fixture.YAML(t, `{providerID: azure://m}`), fixture.YAML(t, `{phase: Creating}`)
		})},
		"no instance exists":   {machine: seen(same)},
		"it has a provider ID": {machine: seen(func(m *clusterv1.Machine) { m.Spec.ProviderID = "azure://m" }), instance: instance(asItIs)},
		"it is being deleted":  {machine: seen(func(m *clusterv1.Machine) { m.DeletionTimestamp = new(metav1.NewTime(fixture.Noon)) }), instance: instance(asItIs)},
		"it has a Node":        {machine: seen(func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }), instance: instance(asItIs)},
		"it was marked for deletion": {machine: seen(func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: ""}
		}), instance: instance(asItIs)},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := fixture.Clusters()
			if tc.instance != nil {
				clusters = fixture.Clusters(tc.instance)
			}
			if diff := cmp.Diff(tc.want, MachineStall(t.Context(), clusters, tc.machine)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
