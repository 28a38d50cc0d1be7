// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A Machine of a MachineDeployment never becomes a Node if its infrastructure object was deleted before it was
// provisioned. What the cache of Cluster API or of the operator may just lack does not count.
func TestOrphans(t *testing.T) {
	adopted := deployment(1)
	adopted.Annotations = map[string]string{v1alpha1.AdoptedAnnotation: timestamp.Format(fixture.Noon.Add(-time.Hour))}
	for name, tc := range map[string]struct {
		resource   *clusterv1.MachineDeployment
		young      bool
		reason     string
		providerID string
		unlinked   bool
		objects    []client.Object
		want       bool
	}{
		"it does not exist":                                     {want: true},
		"it exists":                                             {objects: []client.Object{fixture.Instance()}},
		"the Machine is young":                                  {young: true},
		"Cluster API waits for its provider":                    {reason: clusterv1.MachineInfrastructureNotReadyReason},
		"the Machine has its provider ID":                       {providerID: "x"},
		"the Machine serves no claim":                           {unlinked: true, want: true},
		"the Machine of an adopted resource serves a claim":     {resource: adopted, want: true},
		"the Machine of an adopted resource serves none so far": {resource: adopted, unlinked: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OfPool(fixture.Machine(lo.Ternary(tc.young, time.Second, time.Minute)))
			machine.Spec.ProviderID = tc.providerID
			machine.Labels = map[string]string{v1alpha1.NodeClaimUIDLabel: "claim"}
			if tc.unlinked {
				machine.Labels = nil
			}
			fixture.WithCondition(machine, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, cmp.Or(tc.reason, clusterv1.MachineInfrastructureDoesNotExistReason), "", fixture.Noon)
			snap := snapshotOf(t, scalable.New(cmp.Or(tc.resource, deployment(1))), nil, machine)
			if err := snap.readMachineSets(t.Context(), fixture.Clusters(append(tc.objects, fixture.MachineSet("a", "general", 1))...)); err != nil {
				t.Fatal(err)
			}
			if got := snap.State.Machines[0].InstanceGone; got != tc.want {
				t.Errorf("it counts as gone: %t, want %t", got, tc.want)
			}
			if lost := slices.Contains(planner.Decide(&snap.State).Lost, machine.Name); lost != tc.want {
				t.Errorf("the Machine is lost: %t, want %t", lost, tc.want)
			}
		})
	}
}
