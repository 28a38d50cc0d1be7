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

	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// InstanceGone returns why the instance of a Machine with a Node counts as gone; empty if it does not.
// If that can change by time alone, left is after how long: no event comes then. It reads the Node from the
// cache only if its silence decides.
func InstanceGone(ctx context.Context, clusters *operator.Clusters, machine *clusterv1.Machine, now time.Time) (why string, left time.Duration, err error) {
	why, needsSilence := failure.InstanceGone(machine)
	if !needsSilence {
		return why, 0, nil
	}
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
