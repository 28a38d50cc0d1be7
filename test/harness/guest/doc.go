// SPDX-License-Identifier: Apache-2.0

// Package guest simulates what runs in the machines of a simulated cloud: cloud-init, kubeadm and the kubelet; and the cloud
// controller manager, which gives their Nodes provider IDs and removes Nodes without a machine. kwok is the kubelet of a Node that has
// joined.
//
// Package vsphere and package aws have such clouds.
package guest
