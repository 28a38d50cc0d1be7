// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"time"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// Timestamps are the annotations of a Machine that contain times.
var Timestamps = []string{v1alpha1.MarkedForDeletionAtAnnotation, v1alpha1.SpareSinceAnnotation}

// FixTimes sets the times of a Machine to now if they are invalid or in the future, and reports whether
// there were any. If the Machine has changed since it was read, nothing is written and a conflict is returned.
func FixTimes(ctx context.Context, management client.Client, machine *clusterv1.Machine, now time.Time) (bool, error) {
	wrong := timestamp.Corrections(machine.Annotations, Timestamps, now)
	if len(wrong) == 0 {
		return false, nil
	}
	fixed := machine.DeepCopy()
	fixed.Annotations = lo.Assign(machine.Annotations, wrong)
	return true, precondition.Write(ctx, management, machine, fixed, "setting the times to now of")
}
