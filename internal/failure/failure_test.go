// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const noCapacity = "failed to create AWSMachine instance: failed to run instance: InsufficientInstanceCapacity: There is no Spot capacity available that matches your request."

const noCPU = "The host does not have sufficient CPU resources to satisfy the reservation."

func TestOf(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason, message string) clusterv1.Machine {
		return clusterv1.Machine{Status: clusterv1.MachineStatus{Conditions: []metav1.Condition{
			{Type: clusterv1.MachineBootstrapConfigReadyCondition, Status: metav1.ConditionFalse, Reason: "QuotaExceeded", Message: "bootstrap is not looked at"},
			{Type: clusterv1.MachineInfrastructureReadyCondition, Status: status, Reason: reason, Message: message},
		}}}
	}
	terminal := func(reason, message string) (machine clusterv1.Machine) {
		failure, err := json.Marshal(map[string]string{"failureReason": reason, "failureMessage": message})
		if err != nil {
			t.Fatal(err)
		}
		// Go's names of these fields are deprecated.
		if err := json.Unmarshal(fmt.Appendf(nil, `{"status":{"deprecated":{"v1beta1":%s}}}`, failure), &machine); err != nil {
			t.Fatal(err)
		}
		return machine
	}
	and := func(machine clusterv1.Machine, change func(*clusterv1.Machine)) clusterv1.Machine {
		change(&machine)
		return machine
	}
	// These are the conditions of a Machine with a VSphereMachine (Cluster API Provider vSphere v1.14.0).
	onVSphere := func(reason, message string) clusterv1.Machine {
		machine := ready("False", "NotReady", "* VirtualMachineProvisioned: NotProvisioned")
		machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{ //nolint:staticcheck // Providers of contract v1beta1 report there.
			Conditions: clusterv1.Conditions{{Type: clusterv1.InfrastructureReadyV1Beta1Condition, Status: "False", Severity: "Info", Reason: reason, Message: message}}, //nolint:staticcheck // As above.
		}}
		return machine
	}
	hasProviderID := func(m *clusterv1.Machine) { m.Spec.ProviderID = "aws:///zone/i-1" }
	hasNode := func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "node" }

	for name, test := range map[string]struct {
		machine clusterv1.Machine
		want    *Failure
	}{
		"a new one": {},
		"without capacity": {
			machine: ready("False", "InstanceProvisionFailed", noCapacity),
			want:    &Failure{InsufficientCapacity, "InstanceProvisionFailed: " + noCapacity},
		},
		"without quota, by the reason alone": {
			machine: ready("False", "QuotaExceeded", ""),
			want:    &Failure{QuotaExceeded, "QuotaExceeded"},
		},
		"with a provider that stopped retrying": {
			machine: ready("False", "NotReady", "* ServerCreated: Server creation failed with an irrecoverable error: invalid input (invalid_input)."),
			want:    &Failure{MachineFailed, "NotReady: * ServerCreated: Server creation failed with an irrecoverable error: invalid input (invalid_input)."},
		},
		"without capacity, but launched":       {machine: and(ready("False", "Failed", noCapacity), hasProviderID)},
		"without capacity, but with a Node":    {machine: and(ready("False", "Failed", noCapacity), hasNode)},
		"without capacity, but ready":          {machine: ready("True", "Ready", noCapacity)},
		"without capacity, in unknown state":   {machine: ready("Unknown", "InternalError", noCapacity)},
		"waiting":                              {machine: ready("False", "NotReady", "AWSMachine status.initialization.provisioned is false")},
		"with a failure that is retried":       {machine: ready("False", "InstanceProvisionFailed", "0 of 2 completed")},
		"without an infrastructure object yet": {machine: ready("False", clusterv1.MachineInfrastructureDoesNotExistReason, "AWSMachine does not exist")},
		"with a terminal failure": {
			machine: terminal("CreateError", "Failure detected from referenced resource: disk not found"),
			want:    &Failure{MachineFailed, "CreateError: Failure detected from referenced resource: disk not found"},
		},
		"with a terminal failure for lack of capacity": {
			machine: terminal("CreateError", `Failure detected from referenced resource: Code="SkuNotAvailable" Message="…"`),
			want:    &Failure{InsufficientCapacity, `CreateError: Failure detected from referenced resource: Code="SkuNotAvailable" Message="…"`},
		},
		"with nothing but a terminal reason": {
			machine: terminal("InsufficientResources", ""),
			want:    &Failure{InsufficientCapacity, "InsufficientResources"},
		},
		"with nothing but a terminal message": {
			machine: terminal("", "VM was deleted"),
			want:    &Failure{MachineFailed, "VM was deleted"},
		},
		"with a terminal failure after launch": {
			machine: and(terminal("UpdateError", `EC2 instance state "terminated" is unexpected`), hasProviderID),
			want:    &Failure{MachineFailed, `UpdateError: EC2 instance state "terminated" is unexpected`},
		},
		"with a terminal failure and a Node": {machine: and(terminal("UpdateError", "lost"), hasNode)},
		"that recovered from a terminal failure": {
			machine: and(terminal("CreateError", "timeout"), func(m *clusterv1.Machine) { m.Status.Conditions = ready("True", "Ready", "").Status.Conditions }),
		},
		"with no terminal failure in the deprecated status": {machine: terminal("", "")},
		"on vSphere, without capacity": {
			machine: onVSphere("TaskFailure", noCPU),
			want:    &Failure{InsufficientCapacity, "TaskFailure: " + noCPU},
		},
		"on vSphere, without capacity, but launched":      {machine: and(onVSphere("TaskFailure", noCPU), hasProviderID)},
		"on vSphere, with a failure that may be retried":  {machine: onVSphere("CloningFailed", `unable to find template by name "no-such-template"`)},
		"on vSphere, without capacity in an earlier task": {machine: and(onVSphere("TaskFailure", noCPU), func(m *clusterv1.Machine) { m.Status.Conditions = ready("True", "Ready", "").Status.Conditions })},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Of(&test.machine)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOfInfrastructure(t *testing.T) {
	condition := func(kind, status, reason, message string) any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
	}
	object := func(providerID string, conditions ...any) map[string]any {
		return map[string]any{"spec": map[string]any{"providerID": providerID}, "status": map[string]any{"conditions": conditions}}
	}
	// These are the conditions of cluster-api-provider-aws: Ready does not have the reason.
	onAWS := []any{
		condition("Ready", "False", "InstanceProvisionFailed", "0 of 2 completed"),
		condition("InstanceReady", "False", "InstanceProvisionFailed", noCapacity),
	}
	for name, test := range map[string]struct {
		object map[string]any
		want   *Failure
	}{
		"empty":                {object: map[string]any{}},
		"malformed":            {object: map[string]any{"status": map[string]any{"conditions": []any{"none"}}}},
		"no capacity":          {object: object("", onAWS...), want: &Failure{InsufficientCapacity, "InstanceProvisionFailed: " + noCapacity}},
		"no capacity at first": {object: object("aws:///zone/i-1", onAWS...)},
		"True conditions":      {object: object("", condition("InstanceReady", "True", "QuotaExceeded", ""))},
		"waiting":              {object: object("", condition("InstanceReady", "False", "WaitingForBootstrapData", ""))},
		"capacity and quota, whichever is first": {
			object: object("", onAWS[1], condition("Disk", "False", "DiskFailed", "VolumeLimit: QuotaExceeded")),
			want:   &Failure{QuotaExceeded, "DiskFailed: VolumeLimit: QuotaExceeded"},
		},
		// A VSphereMachine: the conditions of v1beta2 have no message.
		"no capacity on vSphere": {
			object: map[string]any{"spec": map[string]any{"numCPUs": int64(128), "template": "ubuntu"}, "status": map[string]any{
				"ready": false,
				"conditions": []any{
					map[string]any{"type": "Ready", "status": "False", "severity": "Info", "reason": "TaskFailure", "message": noCPU, "lastTransitionTime": "2026-01-01T12:00:00Z"},
					map[string]any{"type": "VMProvisioned", "status": "False", "severity": "Info", "reason": "TaskFailure", "message": noCPU, "lastTransitionTime": "2026-01-01T12:00:00Z"},
				},
				"v1beta2": map[string]any{"conditions": []any{
					condition("Ready", "False", "NotReady", "* VirtualMachineProvisioned: TaskFailed"),
					condition("VirtualMachineProvisioned", "False", "TaskFailed", ""),
				}},
			}},
			want: &Failure{InsufficientCapacity, "TaskFailure: " + noCPU},
		},
		"conditions of v1beta2 on an object of v1beta1": {
			object: map[string]any{"status": map[string]any{"v1beta2": map[string]any{"conditions": []any{
				condition("ServerCreated", "False", "CreationFailed", "error during placement (resource_unavailable, 8a6b)"),
			}}}},
			want: &Failure{InsufficientCapacity, "CreationFailed: error during placement (resource_unavailable, 8a6b)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, OfInfrastructure(&unstructured.Unstructured{Object: test.object})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The first condition with a message shows why there is no machine yet. Ready counts the others.
func TestReported(t *testing.T) {
	const counts = `{"type": "Ready", "status": "False", "reason": "InstanceProvisionFailed", "message": "0 of 2 completed"}`
	for name, tc := range map[string]struct {
		conditions, want string
	}{
		"none":          {conditions: `[]`, want: ": "},
		"only a number": {conditions: `[` + counts + `]`, want: ": "},
		"on AWS": {
			conditions: `[` + counts + `, {"type": "Paused", "status": "False", "reason": "NotPaused"},
				{"type": "InstanceReady", "status": "False", "reason": "InstanceProvisionFailed", "message": "api error UnauthorizedOperation: not authorized"}]`,
			want: "InstanceProvisionFailed: api error UnauthorizedOperation: not authorized",
		},
		"what is True": {conditions: `[{"type": "InstanceReady", "status": "True", "reason": "Ready", "message": "it runs"}]`, want: ": "},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(`{"status": {"conditions": `+tc.conditions+`}}`), &object.Object); err != nil {
				t.Fatal(err)
			}
			if reason, message := Reported(object); reason+": "+message != tc.want {
				t.Errorf("got %s: %s, want %s", reason, message, tc.want)
			}
		})
	}
}

// Of all conditions of contract v1beta1, only that of the infrastructure explains why a machine could not be launched, and
// only while it is False and has a message.
func TestReportedV1Beta1(t *testing.T) {
	type condition = clusterv1.Condition //nolint:staticcheck // Providers of contract v1beta1 report there.
	failed := condition{Type: clusterv1.InfrastructureReadyV1Beta1Condition, Status: "False", Reason: "CloningFailed", Message: "no such template"}
	other, ready, silent := failed, failed, failed
	other.Type, other.Message, ready.Status, silent.Message = clusterv1.ReadyV1Beta1Condition, "0 of 2 completed", "True", ""
	for name, tc := range map[string]struct {
		conditions []condition
		want       string
	}{
		"none":                  {},
		"its infrastructure":    {conditions: []condition{failed}, want: "CloningFailed: no such template"},
		"another one before it": {conditions: []condition{other, failed}, want: "CloningFailed: no such template"},
		"it is True":            {conditions: []condition{ready}},
		"it has no message":     {conditions: []condition{silent}},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &clusterv1.Machine{}
			machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: tc.conditions}} //nolint:staticcheck // As above.
			reason, message := ReportedV1Beta1(machine)
			if got := strings.TrimPrefix(reason+": "+message, ": "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
