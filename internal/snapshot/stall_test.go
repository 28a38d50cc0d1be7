// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
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
		want       planner.Stall
	}{
		"Cluster API creates Machines": {deployment: deployment(4), set: scalingUp(fixture.MachineSet("a", "general", 4), "Scaling up from 3 to 4 replicas")},
		"nothing to create":            {deployment: deployment(4), set: fixture.MachineSet("a", "general", 4)},
		"it would be blocked":          {deployment: deployment(4), set: scalingUp(fixture.MachineSet("a", "general", 4), "Scaling up would be blocked because X does not exist")},
		"a MachineDeployment is new":   {deployment: behind, want: silence("Cluster API has not acted on MachineDeployment clusters/general: check that its controllers run")},
		"it is being deleted":          {deployment: deleted, want: noProgress("MachineDeployment clusters/general is being deleted and creates no Machines: wait until its Machines no longer exist")},
		"no MachineSet exists":         {deployment: deployment(4), want: silence("Cluster API has created no MachineSet for MachineDeployment clusters/general: check that its controllers run")},
		"preflight checks fail": {deployment: deployment(4), set: scalingUp(fixture.MachineSet("a", "general", 4), upgrading), want: planner.Stall{Reason: v1alpha1.ReasonBlocked,
			Message: `MachineSet clusters/a creates no Machines: ControlPlane clusters/prod is upgrading ("ControlPlaneIsStable" preflight check failed); SimulatedMachineTemplate does not exist`}},
		"the MachineSet is new": {deployment: deployment(4), set: notCreated(fixture.MachineSet("a", "general", 4), ""),
			want: silence("Cluster API has not acted on MachineSet clusters/a: check that its controllers run")},
		"a webhook does not answer": {deployment: deployment(4), set: notCreated(fixture.MachineSet("a", "general", 4), `failed calling webhook "x": connection refused`),
			want: noProgress(`MachineSet clusters/a cannot create Machines: failed calling webhook "x": connection refused`)},
		"it cannot create Machines, of which the older API version reports nothing": {deployment: deployment(4), set: withoutV1Beta1,
			want: silence("Cluster API has not acted on MachineSet clusters/a: check that its controllers run")},
		"it has created Machines before": {deployment: deployment(4), set: created,
			want: silence("Cluster API has not acted on MachineSet clusters/a: check that its controllers run")},
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
		})
	}
}

// A MachineSet is blocked only if it has certainly created no Machine for its present replicas.
func TestBlocked(t *testing.T) {
	probed := fixture.Noon.Add(-clients.ProductionTimings().Probe)
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
		"replicas were lowered now":               {deployment: lowered(fixture.Noon), set: counts(fixture.MachineSet("a", "general", 4), 3), want: planner.MachineSet{Replicas: 4, LoweredAt: fixture.Noon}, dueIn: 15 * time.Second},
		"replicas were lowered 15 seconds ago":    {deployment: lowered(probed), set: counts(fixture.MachineSet("a", "general", 4), 3), want: planner.MachineSet{Replicas: 4, LoweredAt: probed}},
		"lowered 15 seconds ago, not passed on":   {deployment: lowered(probed), set: counts(fixture.MachineSet("a", "general", 5), 3), want: planner.MachineSet{Replicas: 5, LoweredAt: probed}},
		"lowered 15 seconds ago, not acted on":    {deployment: lowered(probed), set: counts(notCreated(fixture.MachineSet("a", "general", 4), ""), 3), want: planner.MachineSet{Replicas: 4, Behind: true, LoweredAt: probed}},
	} {
		t.Run(name, func(t *testing.T) {
			snap := snapshotOf(t, scalable.New(tc.deployment), nil, fixture.OwnedBy("1", "a"), fixture.OwnedBy("2", "a"), fixture.OwnedBy("3", "a"))
			if err := snap.readMachineSets(t.Context(), fixture.Clusters(tc.set)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(planner.Scaling(tc.want), snap.State.Scaling); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			snap.State.Machines = nil
			if got := planner.Decide(&snap.State).Due.In; got != tc.dueIn {
				t.Errorf("due in %s, want %s", got, tc.dueIn)
			}
		})
	}
}

// A claim whose launch is stalled does not fail, because its offering was not tried.
func TestStallIsNoFailure(t *testing.T) {
	blocked := planner.Stall{Reason: v1alpha1.ReasonBlocked, Message: "upgrading"}
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
		halt      planner.Stall
		noneYet   bool
		unasked   bool
		leaving   bool // a Machine of the claim
		short     bool // launchTimeoutSeconds
		want      planner.Stall
		wantFails bool
		resumes   bool
	}{
		"not stalled":                                   {claim: fixture.Claim(time.Hour), wantFails: true},
		"blocked":                                       {claim: fixture.Claim(time.Hour), halt: blocked, want: blocked},
		"blocked from the start":                        {claim: fixture.Claim(time.Second), halt: blocked, want: blocked},
		"no progress":                                   {claim: fixture.Claim(time.Hour), halt: stands, want: stands},
		"no progress for 29 seconds":                    {claim: fixture.Claim(29 * time.Second), halt: stands},
		"no progress for 30 seconds":                    {claim: fixture.Claim(30 * time.Second), halt: stands, want: stands},
		"no progress of its Machine":                    {claim: fixture.Claim(time.Hour), machine: fixture.Machine(time.Hour), halt: stands, want: stands},
		"resumed, which the claim does not show yet":    {claim: condition(time.Hour, v1alpha1.ReasonBlocked, time.Hour), resumes: true},
		"resumed a minute ago":                          {claim: condition(time.Hour, v1alpha1.ReasonResumed, time.Minute)},
		"resumed a minute ago, with a Machine":          {claim: condition(time.Hour, v1alpha1.ReasonResumed, time.Minute), machine: fixture.Machine(time.Hour)},
		"resumed 10 minutes ago, without a Machine":     {claim: condition(time.Hour, v1alpha1.ReasonResumed, 10*time.Minute), wantFails: true},
		"resumed 10 minutes ago, without a provider ID": {claim: condition(time.Hour, v1alpha1.ReasonResumed, 10*time.Minute), machine: fixture.Machine(time.Hour), wantFails: true},
		"resumed before its Machine was created":        {claim: condition(2*time.Hour, v1alpha1.ReasonResumed, time.Hour), machine: fixture.Machine(time.Minute)},
		"created a minute ago, by another clock":        {claim: condition(time.Minute, v1alpha1.ReasonResumed, time.Hour)},
		"launched a minute ago":                         {claim: launched(time.Hour, time.Minute)},
		"no resource was created yet":                   {claim: fixture.Claim(time.Hour), noneYet: true, halt: stands, want: stands},
		"a resource was rejected a minute ago":          {claim: condition(time.Hour, v1alpha1.ReasonRejected, time.Minute), noneYet: true, halt: stands},
		"it is being deleted":                           {claim: ends(fixture.Claim(time.Hour)), halt: stands},
		"its Machine leaves":                            {claim: fixture.Claim(time.Hour), leaving: true, halt: stands},
		"raised replicas were rejected before":          {claim: condition(time.Hour, v1alpha1.ReasonRejected, 10*time.Minute), halt: stands, want: stands},
		"no progress for a launchTimeoutSeconds of 10":  {claim: fixture.Claim(10 * time.Second), short: true, halt: stands, want: stands},
		"replicas are not raised yet":                   {claim: fixture.Claim(29 * time.Second), unasked: true},
		"replicas could not be raised":                  {claim: fixture.Claim(time.Hour), unasked: true, want: silence("the replicas of MachineDeployment clusters/general could not be set to 2: see the log of the operator")},
		"replicas could not be raised, and blocked":     {claim: fixture.Claim(time.Hour), unasked: true, halt: blocked, want: blocked},
		"raised replicas are rejected":                  {claim: condition(time.Hour, v1alpha1.ReasonRejected, time.Minute), unasked: true},
		"raised replicas were rejected 10 minutes ago":  {claim: condition(time.Hour, v1alpha1.ReasonRejected, 10*time.Minute), unasked: true, wantFails: true},
		"a resource was rejected 10 minutes ago":        {claim: condition(time.Hour, v1alpha1.ReasonRejected, 10*time.Minute), noneYet: true, halt: stands, wantFails: true},
	} {
		t.Run(name, func(t *testing.T) {
			var resource *scalable.Resource
			if !tc.noneYet {
				resource = scalable.New(deployment(1))
			}
			claims, machines := []*karpv1.NodeClaim{tc.claim}, []*clusterv1.Machine(nil)
			if tc.unasked {
				another := fixture.Claim(time.Hour)
				another.Name, another.UID = "another", "another"
				claims = append(claims, another)
			}
			if tc.leaving {
				machine := serving(fixture.Machine(time.Hour), "c")
				machine.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
				machines = append(machines, machine)
			}
			if tc.machine != nil {
				machines = append(machines, serving(tc.machine, "c"))
			}
			state := &snapshotOf(t, resource, claims, machines...).State
			if tc.short {
				state.Durations.LaunchTimeout = 10 * time.Second
			}
			if tc.machine != nil {
				state.Machines[0].Stall = tc.halt
			} else {
				state.Stall = tc.halt
			}
			outcome := planner.Decide(state).Outcomes["c"]
			if diff := cmp.Diff(tc.want, outcome.Stall); diff != "" {
				t.Errorf("stall (-want +got):\n%s", diff)
			}
			if failed := outcome.Failure; (failed != failure.Failure{}) != tc.wantFails {
				t.Errorf("failure: got %+v, want one: %t", failed, tc.wantFails)
			}
			if outcome.Resumes != tc.resumes {
				t.Errorf("its launch goes on: %t, want %t", outcome.Resumes, tc.resumes)
			}
		})
	}
}

// stallOfMachine returns why nothing acts on a Machine, however old it is.
func stallOfMachine(ctx context.Context, clusters *clients.Clusters, machine *clusterv1.Machine) planner.Stall {
	read := MachineOf(machine)
	return readStall(ctx, clusters, machine, &read)
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
		want     planner.Stall
	}{
		"Cluster API has not acted": {machine: seen(func(m *clusterv1.Machine) { m.Status.Conditions = nil }), instance: instance(asItIs),
			want: silence("Cluster API has not acted on Machine clusters/m: check that its controllers run")},
		"the provider has not acted": {machine: seen(same), instance: instance(asItIs),
			want: silence("the infrastructure provider has not acted on AzureMachinePoolMachine m of Machine clusters/m: check that it runs")},
		"the provider has a finalizer": {machine: seen(same), instance: instance(func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"azure"}) })},
		"the provider has a status":    {machine: seen(same), instance: instance(func(o *unstructured.Unstructured) { o.Object["status"] = fixture.YAML(t, `{phase: Creating}`) })},
		"Cluster API has not noticed": {machine: seen(same), instance: instance(func(o *unstructured.Unstructured) {
			o.Object["spec"], o.Object["status"] = fixture.YAML(t, `{providerID: azure://m}`), fixture.YAML(t, `{initialization: {provisioned: true}}`)
		}), want: silence("Cluster API has not noticed that AzureMachinePoolMachine m of Machine clusters/m is provisioned: check that its controllers run")},
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
			if diff := cmp.Diff(tc.want, stallOfMachine(t.Context(), clusters, tc.machine)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
