// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A Machine has failed if it, or its infrastructure object, reports that. A Machine with a provider ID, a Node or an
// infrastructure that reports no problem does not fail, whatever its object says.
func TestFailureOf(t *testing.T) {
	const noCapacity = `{conditions: [{type: VMProvisioned, status: "False", reason: InsufficientInstanceCapacity, message: none left}]}`
	notReady := func(m *clusterv1.Machine) {
		fixture.WithCondition(m, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady", "0 of 2 completed", fixture.Noon)
	}
	for name, tc := range map[string]struct {
		machine  []func(*clusterv1.Machine)
		instance string // status of its infrastructure object; empty if there is none
		want     failure.Kind
		reported string // what its provider reports, if it has not failed
	}{
		"its object tells more than it": {
			machine: []func(*clusterv1.Machine){notReady}, reported: "Denied: not authorized",
			instance: `{conditions: [{type: Ready, status: "False", message: 0 of 2 completed}, {type: VMProvisioned, status: "False", reason: Denied, message: not authorized}]}`,
		},
		"it waits":                     {machine: []func(*clusterv1.Machine){notReady}, instance: `{}`},
		"its object reports a failure": {machine: []func(*clusterv1.Machine){notReady}, instance: noCapacity, want: failure.InsufficientCapacity},
		"its object cannot be read":    {machine: []func(*clusterv1.Machine){notReady}},
		"it has reported nothing yet":  {instance: noCapacity},
		"its infrastructure is ready": {machine: []func(*clusterv1.Machine){func(m *clusterv1.Machine) {
			fixture.WithCondition(m, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionTrue, "Ready", "", fixture.Noon)
		}}, instance: noCapacity},
		"it has a provider ID": {machine: []func(*clusterv1.Machine){notReady, func(m *clusterv1.Machine) { m.Spec.ProviderID = "sim://m" }}, instance: noCapacity},
		"it has a Node":        {machine: []func(*clusterv1.Machine){notReady, func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }}, instance: noCapacity},
		"it reports a failure itself": {machine: []func(*clusterv1.Machine){func(m *clusterv1.Machine) {
			fixture.WithCondition(m, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady", "InsufficientInstanceCapacity: none left", fixture.Noon)
		}}, want: failure.InsufficientCapacity},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OfPool(fixture.Machine(time.Minute))
			for _, change := range tc.machine {
				change(machine)
			}
			var objects []client.Object
			if tc.instance != "" {
				instance := fixture.Instance()
				instance.Object["status"] = fixture.YAML(t, tc.instance)
				objects = append(objects, instance)
			}
			read := MachineOf(machine)
			readFailure(t.Context(), fixture.Clusters(objects...), machine, &read)
			if got := read.Failure.Kind; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := read.Provider.String(); tc.want == "" && !strings.Contains(got, tc.reported) {
				t.Errorf("its provider reports %q, want %q", got, tc.reported)
			}
		})
	}
}
