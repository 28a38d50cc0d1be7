// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SimulatedClusterIdentity stands for the kinds of providers that have no namespace, such as
// AWSClusterRoleIdentity and VSphereClusterIdentity. No controller reads it. It shows that the operator
// works beside kinds that it has no rights for.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedClusterIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// SimulatedClusterIdentityList is a list of SimulatedClusterIdentities.
//
// +kubebuilder:object:root=true
type SimulatedClusterIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedClusterIdentity `json:"items"`
}
