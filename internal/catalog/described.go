// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// OfMachineDeployment returns the instance type that a template would discover in a MachineDeployment. The error says what a
// user has to change before the template can use it. The infrastructure template is nil if it does not exist.
func OfMachineDeployment(deployment *clusterv1.MachineDeployment, infrastructure *unstructured.Unstructured, template *v1alpha1.KarpenterMachineTemplate) (Type, error) {
	prices, err := pricesOfDiscovered(nil)
	if err != nil {
		return Type{}, err
	}
	found, err := fromMachineDeployment(deployment, infrastructure, template, prices)
	if err != nil {
		return Type{}, err
	}
	return found, usable(found.Capacity, template.Spec.Kubelet)
}
