// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
)

// Node is what a Machine itself shows of the Node that it has or had.
type Node struct {
	// Removed reports whether Cluster API does not find the Node any more. It looks for it by the provider ID of the Machine, so
	// it reports the same when a provider changes this ID.
	Removed bool
	// InstanceGone is why the instance no longer exists; empty if it exists. If GaveUp is true, its provider only gave up on it,
	// and the Node must confirm that.
	InstanceGone string
	GaveUp       bool
}

// NodeOf returns what a Machine itself shows of its Node.
func NodeOf(machine *clusterv1.Machine) Node {
	var node Node
	healthy := conditions.Get(machine, clusterv1.MachineNodeHealthyCondition)
	node.Removed = healthy != nil && healthy.Reason == clusterv1.MachineNodeDeletedReason
	node.InstanceGone, node.GaveUp = failure.InstanceGone(machine)
	return node
}

// InstanceGone returns why the instance of a Machine with a Node counts as gone; empty if it does not.
// If that can change by time alone, left is after how long: no event comes then. It reads the Node from the
// cache only if its silence decides.
func InstanceGone(ctx context.Context, clusters *clients.Clusters, machine *clusterv1.Machine, now time.Time) (why string, left time.Duration, err error) {
	shown := NodeOf(machine)
	if !shown.GaveUp {
		return shown.InstanceGone, 0, nil
	}
	why = shown.InstanceGone
	node, name := &corev1.Node{}, machine.Status.NodeRef.Name
	if err := clusters.Workload.GetClient().Get(ctx, types.NamespacedName{Name: name}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return why, 0, nil // nothing runs on a Node that does not exist
		}
		return "", 0, fmt.Errorf("getting Node %s: %w", name, err)
	}
	silent, left := failure.Silent(node, now)
	if !silent {
		why = ""
	}
	return why, left, nil
}
