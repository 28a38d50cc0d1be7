// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"github.com/awslabs/operatorpkg/controller"
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	autoscalingv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	metricsnode "sigs.k8s.io/karpenter/pkg/controllers/metrics/node"
	metricspod "sigs.k8s.io/karpenter/pkg/controllers/metrics/pod"
	"sigs.k8s.io/karpenter/pkg/controllers/state"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Replace returns the controller that runs instead of c, which is c itself unless this package replaces it. It also
// replaces the gauges of c, so no controller may run yet.
func Replace(c controller.Controller, cluster *state.Cluster) controller.Controller {
	switch cores := c.(type) {
	case *status.Controller[*karpv1.NodeClaim]:
		return newStatusController(cores, cores, &karpv1.NodeClaim{})
	case *status.Controller[*karpv1.NodePool]:
		return newStatusController(cores, cores, &karpv1.NodePool{})
	case *status.Controller[*v1alpha1.KarpenterMachineTemplate]:
		return newStatusController(cores, cores, &v1alpha1.KarpenterMachineTemplate{})
	case *status.GenericObjectController[*corev1.Node]:
		return newStatusController(cores.Controller, cores, &corev1.Node{}, nodeChanges)
	case *status.GenericObjectController[*autoscalingv1beta1.CapacityBuffer]:
		return newStatusController(cores.Controller, cores, &autoscalingv1beta1.CapacityBuffer{})
	case *metricsnode.Controller:
		return newNodes(cluster)
	case *metricspod.Controller:
		replaceGauge(&metricspod.PodUnboundTimeSeconds, false)
		replaceGauge(&metricspod.PodProvisioningUnboundTimeSeconds, false)
	}
	return c
}
