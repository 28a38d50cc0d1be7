// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Timestamps are the annotations of a Machine that contain times.
var Timestamps = []string{v1alpha1.MarkedForDeletionAtAnnotation, v1alpha1.SpareSinceAnnotation}

// HasNode reports whether a Machine has a Node.
func HasNode(machine *clusterv1.Machine) bool {
	return machine.Status.NodeRef.IsDefined()
}
