// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Effective returns a client for Karpenter core, which does not send patches of NodeClaims that cannot change
// anything, or that another one makes superfluous.
//
// Core's lifecycle controller sends each change of a NodeClaim twice: as a patch of the object, and as one of its
// status (karpenter: pkg/controllers/nodeclaim/lifecycle/controller.go, Reconcile). The status is a subresource, so the
// API server ignores it in the first patch, and everything else in the second. If only one part has changed, one of
// both patches is a request for nothing. Only NodeClaims have such patches: core patches other kinds only if the part
// that it patches has changed.
//
// Such a patch succeeds without a request. Its answer is missed, which decision 48 discusses for each caller:
//
//   - The object stays as the caller has changed it, and does not become the stored one.
//   - There is no error if the NodeClaim has changed or no longer exists. A patch with the resourceVersion as
//     precondition would fail then, with nothing to write. The event of the newer version reconciles the NodeClaim.
//
// Each controller that asks for a condition of a new NodeClaim adds all conditions to it, as unknown (operatorpkg:
// status/condition_set.go, For), and sends that as a patch of the status with a precondition. Core's lifecycle controller does
// the same without a precondition, when it launches the NodeClaim, and reports why it cannot. So before that, patches of the
// status with a precondition are not sent: they would only conflict with the launch. Its event reconciles the NodeClaim again.
//
// The controller node.hydration adds the label of the NodeClass to each new Node (karpenter: pkg/controllers/node/hydration/
// controller.go). The registration adds all labels of the NodeClaim, that one included, and often conflicted with it, so the
// label alone is not sent before.
func Effective(c client.Client) client.Client { return &effective{Client: c} }

type effective struct{ client.Client }

// Patch implements client.Writer.
func (c *effective) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	_, isNode := object.(*corev1.Node)
	if !isNode && !isClaim(object) || patch.Type() != types.MergePatchType || len(options) > 0 {
		return c.Client.Patch(ctx, object, patch, options...)
	}
	known, changes, err := decode(object, patch)
	switch {
	case err != nil, isNode && onlyHydrates(object, changes), !isNode && !changesObject(changes):
		return err
	}
	return c.Client.Patch(ctx, object, known)
}

// onlyHydrates reports whether a merge patch of a Node only adds the label of its NodeClass, before Karpenter has registered
// the Node.
func onlyHydrates(node client.Object, changes map[string]any) bool {
	if _, registered := node.GetLabels()[karpv1.NodeRegisteredLabelKey]; registered || len(changes) != 1 {
		return false
	}
	metadata, _ := changes["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	_, found := labels[NodeTemplateLabel]
	return found && len(labels) == 1 && len(metadata) == 1
}

// Status implements client.StatusClient.
func (c *effective) Status() client.SubResourceWriter { return &effectiveStatus{c.Client.Status()} }

type effectiveStatus struct{ client.SubResourceWriter }

// Patch implements client.SubResourceWriter.
func (c *effectiveStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if !isClaim(object) || patch.Type() != types.MergePatchType || len(options) > 0 {
		return c.SubResourceWriter.Patch(ctx, object, patch, options...)
	}
	known, changes, err := decode(object, patch)
	if err != nil || !changesStatus(changes) || isLocked(changes) && isNew(object) {
		return err
	}
	return c.SubResourceWriter.Patch(ctx, object, known)
}

func isClaim(object client.Object) bool {
	_, is := object.(*karpv1.NodeClaim)
	return is
}

// decode returns the patch with its data, which is not computed again when it is sent, and what it changes.
func decode(object client.Object, patch client.Patch) (client.Patch, map[string]any, error) {
	data, err := patch.Data(object)
	if err != nil {
		return nil, nil, fmt.Errorf("computing a patch of %T %s: %w", object, object.GetName(), err)
	}
	var changes map[string]any
	if err := json.Unmarshal(data, &changes); err != nil {
		return nil, nil, fmt.Errorf("reading a patch of %T %s: %w", object, object.GetName(), err)
	}
	return client.RawPatch(patch.Type(), data), changes, nil
}

// isNew reports whether a NodeClaim is not launched yet.
func isNew(object client.Object) bool {
	claim, isClaim := object.(*karpv1.NodeClaim)
	return isClaim && claim.Status.ProviderID == "" && claim.DeletionTimestamp.IsZero()
}

// isLocked reports whether a merge patch has the resourceVersion as precondition.
func isLocked(changes map[string]any) bool {
	metadata, _ := changes["metadata"].(map[string]any)
	_, locked := metadata["resourceVersion"]
	return locked
}

// changesObject reports whether a merge patch changes anything but the status. The resourceVersion is a precondition,
// and no change.
func changesObject(changes map[string]any) bool {
	for field, value := range changes {
		metadata, _ := value.(map[string]any)
		switch {
		case field == "status":
		case field == "metadata" && isLocked(changes) && len(metadata) == 1:
		default:
			return true
		}
	}
	return false
}

// changesStatus reports whether a merge patch changes the status.
func changesStatus(changes map[string]any) bool {
	_, found := changes["status"]
	return found
}
