// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the infrastructure kinds of the simulated Cluster API provider.
//
// They follow the v1beta2 contract of Cluster API: InfraCluster, InfraMachine, InfraMachinePool and
// their templates.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of this package's kinds.
	GroupVersion = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds this package's kinds to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&SimulatedCluster{}, &SimulatedClusterList{},
		&SimulatedClusterTemplate{}, &SimulatedClusterTemplateList{},
		&SimulatedClusterIdentity{}, &SimulatedClusterIdentityList{},
		&SimulatedMachine{}, &SimulatedMachineList{},
		&SimulatedMachineTemplate{}, &SimulatedMachineTemplateList{},
		&SimulatedMachinePool{}, &SimulatedMachinePoolList{},
		&SimulatedMachinePoolTemplate{}, &SimulatedMachinePoolTemplateList{},
		&SimulatedRemediation{}, &SimulatedRemediationList{},
		&SimulatedRemediationTemplate{}, &SimulatedRemediationTemplateList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
