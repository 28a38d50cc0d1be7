// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Changed passes updates of a MachineDeployment that can change what templates take from it. It
// drops those of replicas and of the status, which are frequent.
func Changed() predicate.Predicate {
	state := func(deployment *clusterv1.MachineDeployment) [2]string {
		return [2]string{Observe(deployment).Hash, Problem(deployment)}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isDeployment := e.ObjectOld.(*clusterv1.MachineDeployment)
		after, isStill := e.ObjectNew.(*clusterv1.MachineDeployment)
		return isDeployment && isStill && state(before) != state(after)
	}}
}
