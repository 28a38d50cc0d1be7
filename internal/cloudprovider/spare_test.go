// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// vSphere's provider v1.14 after the virtual machine of a Machine was destroyed: only its VSphereVM reports
// that. The VSphereMachine and the Machine look as if the Node were about to join.
const (
	destroyedMachine = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: VSphereMachine
metadata: {namespace: clusters, name: m, finalizers: [vspheremachine.infrastructure.cluster.x-k8s.io]}
spec: {providerID: "vsphere://4211", template: ubuntu}
status:
  ready: true
  addresses: [{type: InternalIP, address: 192.0.2.7}]
  conditions:
  - {type: Ready, status: "True", lastTransitionTime: "2026-01-01T11:50:30Z"}
  - {type: VMProvisioned, status: "True", lastTransitionTime: "2026-01-01T11:50:30Z"}
  v1beta2:
    conditions:
    - {type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T11:50:30Z"}
    - {type: VirtualMachineProvisioned, status: "True", reason: Provisioned, message: "", lastTransitionTime: "2026-01-01T11:50:30Z"}`
	destroyedVM = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: VSphereVM
metadata: {namespace: clusters, name: m, finalizers: [vspherevm.infrastructure.cluster.x-k8s.io]}
spec: {biosUUID: "4211", template: ubuntu}
status:
  ready: true
  conditions:
  - {type: Ready, status: "False", severity: Warning, reason: NotFoundByBIOSUUID, message: "vm with bios uuid 4211 not found", lastTransitionTime: "2026-01-01T11:52:00Z"}
  - {type: VMProvisioned, status: "False", severity: Warning, reason: NotFoundByBIOSUUID, message: "vm with bios uuid 4211 not found", lastTransitionTime: "2026-01-01T11:52:00Z"}`
)

// The Machine of a claim that is deleted serves the next claim only if it can still become a Node, and
// was not given up. After a pause, launchTimeoutSeconds starts again.
func TestDeleteKeepsMachines(t *testing.T) {
	const launchTimeout = 40 * time.Minute
	// provisioned is a Machine of the given age whose instance was provisioned the given time before noon.
	provisioned := func(age, ago time.Duration) *clusterv1.Machine {
		machine := fixture.Machine(age)
		machine.Spec.ProviderID = "vsphere://4211"
		machine.Status.Initialization.InfrastructureProvisioned = new(true)
		return fixture.WithCondition(machine, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionTrue, "Ready", "", fixture.Noon.Add(-ago))
	}
	unpaused := func(machine *clusterv1.Machine, ago time.Duration) *clusterv1.Machine {
		return fixture.WithCondition(machine, clusterv1.PausedCondition, metav1.ConditionFalse, "NotPaused", "", fixture.Noon.Add(-ago))
	}
	for name, tc := range map[string]struct {
		machine *clusterv1.Machine
		waited  time.Duration // how long core waited for the Node until the claim was deleted
		kept    bool
	}{
		"it boots":                                        {machine: fixture.Machine(5 * time.Minute), waited: 5 * time.Minute, kept: true},
		"it boots, and Karpenter gives up":                {machine: fixture.Machine(15 * time.Minute), waited: 15 * time.Minute, kept: true},
		"it boots for launchTimeoutSeconds":               {machine: fixture.Machine(launchTimeout), waited: 15 * time.Minute},
		"it boots since the end of a pause":               {machine: unpaused(fixture.Machine(2*time.Hour), time.Minute), waited: 15 * time.Minute, kept: true},
		"it boots for launchTimeoutSeconds since a pause": {machine: unpaused(fixture.Machine(2*time.Hour), launchTimeout), waited: 15 * time.Minute},
		"its virtual machine was destroyed":               {machine: provisioned(10*time.Minute, 9*time.Minute), waited: 9 * time.Minute},
		"the Node is missing for a minute":                {machine: provisioned(10*time.Minute, time.Minute), waited: 13 * time.Minute},
		"the Node is missing for less":                    {machine: provisioned(10*time.Minute, time.Minute-time.Second), waited: 10 * time.Minute, kept: true},
		"the Node is missing since a pause ended":         {machine: unpaused(provisioned(10*time.Minute, 9*time.Minute), time.Minute-time.Second), waited: 9 * time.Minute, kept: true},
		"the ID came after the claim was deleted":         {machine: provisioned(10*time.Minute, -time.Second), waited: 10 * time.Minute, kept: true},
		"the Node is missing, and Karpenter gives up":     {machine: provisioned(15*time.Minute, 14*time.Minute), waited: 15 * time.Minute, kept: true},
		"the same, and clocks differ by a minute":         {machine: provisioned(15*time.Minute, 14*time.Minute), waited: 14 * time.Minute, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			// The claim was created an hour ago: it waited for its template. Core counts from the launch.
			claim := fixture.Claim(time.Hour)
			claim.Spec.NodeClassRef = nodeClassRef
			claim.StatusConditions().SetUnknown(karpv1.ConditionTypeRegistered)
			for i := range claim.Status.Conditions {
				claim.Status.Conditions[i].LastTransitionTime = metav1.NewTime(fixture.Noon.Add(-tc.waited))
			}
			claim.Finalizers, claim.DeletionTimestamp = []string{karpv1.TerminationFinalizer}, new(metav1.NewTime(fixture.Noon))
			claim.Status.ProviderID = tc.machine.Spec.ProviderID
			machine := fixture.OfMachineDeployment(tc.machine)
			machine.Labels[v1alpha1.NodeClaimUIDLabel], machine.Labels[v1alpha1.TemplateLabel] = string(claim.UID), "general"
			machine.Annotations = map[string]string{v1alpha1.NodeClaimAnnotation: claim.Name, v1alpha1.DrainHookAnnotation: ""}
			machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "VSphereMachine", Name: "m"}
			// Cluster API has acted on it, or else it is stalled.
			fixture.WithCondition(machine, clusterv1.MachineBootstrapConfigReadyCondition, metav1.ConditionTrue, "Ready", "", machine.CreationTimestamp.Time)
			template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
			template.Spec.LaunchTimeoutSeconds = new(int32(launchTimeout / time.Second))
			crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "vspheremachines.infrastructure.cluster.x-k8s.io", map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1"})
			instance := &unstructured.Unstructured{Object: fixture.YAML(t, destroyedMachine)}
			if machine.Spec.ProviderID == "" {
				delete(instance.Object["spec"].(map[string]any), "providerID")
				instance.Object["status"] = fixture.YAML(t, `{conditions: [{type: VMProvisioned, status: "False", reason: Cloning}]}`)
			}
			c := fixture.WithJSONPatch(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithStatusSubresource(claim).
				WithObjects(claim, machine, template, crd, instance, &unstructured.Unstructured{Object: fixture.YAML(t, destroyedVM)},
					&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}).
				WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(o client.Object) []string { return []string{string(lifecycle.ClaimUID(o))} }).
				WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).Build())
			both := fixture.Cluster{Client: c}
			provider := New(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil, clocktesting.NewFakeClock(fixture.Noon))

			if err := provider.Delete(t.Context(), claim); cloudprovider.IsNodeClaimNotFoundError(err) != tc.kept || err != nil && !tc.kept {
				t.Errorf("got %v, want that the claim ends: %t", err, tc.kept)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
				t.Fatal(err)
			}
			if spare := lifecycle.ClaimUID(machine) == "" && lifecycle.HasSpareTime(machine); spare != tc.kept || lifecycle.IsMarked(machine) == tc.kept {
				t.Errorf("spare: %t, marked: %t, want that it is kept: %t", spare, lifecycle.IsMarked(machine), tc.kept)
			}
		})
	}
}
