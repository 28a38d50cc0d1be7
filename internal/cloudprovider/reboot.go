// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"fmt"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/remediation"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// Reboot creates the remediation request for the Machine of a claim whose Node core has drained. Core then waits for
// another boot ID of the Node, and replaces the Node if there is none within 20 minutes. A call for the same operation
// repeats nothing.
//
// It returns NodeRebootNotImplementedError if the template of the claim has no remediation, and NodeRebootFailedError if the
// Machine cannot be restarted: core replaces the Node at once. With any other error, core calls it again for 5 minutes.
func (c *CloudProvider) Reboot(ctx context.Context, claim *karpv1.NodeClaim, operationID string) error {
	if err := c.clusters.Guard(ctx); err != nil {
		return err
	}
	template, err := c.template(ctx, claim.Spec.NodeClassRef)
	if cloudprovider.IsNodeClassNotReadyError(err) {
		return cloudprovider.NewNodeRebootFailedError(err)
	}
	if err != nil {
		return err
	}
	if err := mayRestart(template); err != nil {
		return err
	}
	machine, err := c.machineToRestart(ctx, claim)
	if err != nil {
		return err
	}
	created, err := remediation.Restart(ctx, c.clusters, template, machine, claim, operationID)
	if impossible := (remediation.Impossible{}); errors.As(err, &impossible) {
		return cloudprovider.NewNodeRebootFailedError(err)
	}
	if created {
		c.recorder.Publish(remediationRequested(claim, machine, template.Spec.Remediation.TemplateRef))
	}
	return err
}

// mayRestart returns an error unless the machines of a template can be restarted.
func mayRestart(template *v1alpha1.KarpenterMachineTemplate) error {
	if template.Spec.Remediation == nil {
		return cloudprovider.NewNodeRebootNotImplementedError()
	}
	ready := template.StatusConditions(status.WithObservedOnly()).Get(v1alpha1.ConditionRemediationReady)
	if ready == nil || ready.ObservedGeneration != template.Generation {
		return fmt.Errorf("KarpenterMachineTemplate %s is not reconciled yet", template.Name)
	}
	if !ready.IsTrue() {
		return cloudprovider.NewNodeRebootFailedError(fmt.Errorf("KarpenterMachineTemplate %s: %s", template.Name, ready.Message))
	}
	return nil
}

// machineToRestart returns the Machine of a claim. The cache has it: the link of a registered claim is older than its Node. A
// Machine that leaves is not restarted, and while it is paused, nothing acts on a request.
func (c *CloudProvider) machineToRestart(ctx context.Context, claim *karpv1.NodeClaim) (*clusterv1.Machine, error) {
	linked, err := c.machines(ctx, c.clusters.Management.GetClient(), client.MatchingFields{clients.MachineClaimField: string(claim.UID)})
	if err != nil {
		return nil, err
	}
	if linked, err = scalable.OwnMachines(ctx, c.clusters, linked); err != nil {
		return nil, err
	}
	machine, found := lo.Find(linked, func(m clusterv1.Machine) bool { return lifecycle.HasIDOrNodeOf(&m, claim) })
	if !found {
		if err := c.checkAbsence(ctx); err != nil {
			return nil, err
		}
		return nil, cloudprovider.NewNodeRebootFailedError(fmt.Errorf("no Machine serves NodeClaim %s", claim.Name))
	}
	paused, err := scalable.MachineSuspended(ctx, c.clusters, &machine)
	if err != nil {
		return nil, err
	}
	if paused {
		return nil, fmt.Errorf("cannot restart Machine %s, because it is paused", client.ObjectKeyFromObject(&machine))
	}
	if lifecycle.IsLeaving(&machine) {
		return nil, cloudprovider.NewNodeRebootFailedError(fmt.Errorf("cannot restart Machine %s, because it is being deleted", client.ObjectKeyFromObject(&machine)))
	}
	return &machine, nil
}

// remediationRequested reports that the machine of a claim is restarted.
func remediationRequested(claim *karpv1.NodeClaim, machine *clusterv1.Machine, ref clusterv1.ContractVersionedObjectReference) events.Event {
	return events.Event{
		InvolvedObject: claim,
		Type:           corev1.EventTypeNormal,
		Reason:         v1alpha1.ReasonRemediationRequested,
		Message:        fmt.Sprintf("Created %s %s, so that its provider restarts the machine", remediation.KindOf(ref).Kind, client.ObjectKeyFromObject(machine)),
		DedupeValues:   []string{string(claim.UID)},
	}
}
