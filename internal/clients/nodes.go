// SPDX-License-Identifier: Apache-2.0

package clients

import (
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// StripNodes returns the transform of Nodes in the cache. It removes what neither core nor this operator reads: managed fields,
// and the images, of which a kubelet reports up to 50 (kubernetes: pkg/kubelet/apis/config/v1beta1/defaults.go,
// NodeStatusMaxImages). Core copies each Node several times when it looks for Nodes to disrupt, every 10 seconds (karpenter:
// pkg/controllers/disruption/helpers.go).
func StripNodes() toolscache.TransformFunc {
	return func(in any) (any, error) {
		if node, is := in.(*corev1.Node); is { // It can be a tombstone.
			node.ManagedFields, node.Status.Images = nil, nil
		}
		return in, nil
	}
}
