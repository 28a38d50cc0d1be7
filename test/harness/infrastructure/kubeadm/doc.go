// SPDX-License-Identifier: Apache-2.0

// Package kubeadm reads the bootstrap data of a machine as the programs on a real machine do: cloud-init writes files and runs
// commands, one of which is `kubeadm join`; kubeadm reads its configuration, and starts the kubelet with arguments, which
// decide about the Node. What these programs reject is an error here, too.
//
// Commands other than `kubeadm join`, and files that other programs read, have no effect. So have arguments of the kubelet
// that do not change its Node.
package kubeadm
