// SPDX-License-Identifier: Apache-2.0

// Package clusterctl tests that clusterctl installs the operator as docs/installation/clusterctl.md says, on the local stack. Run
// it with make test-install-clusterctl.
//
// Fake kubelets run no containers and nothing is downloaded, so some parts have stand-ins:
//
//   - Cluster API's core provider is installed from its Go module. Its Deployment has no replicas: the stack's process is
//     in its place, and the webhooks and conversions go on to lead there.
//   - Of cert-manager there are only the CustomResourceDefinitions. Nobody needs its certificates, for the webhooks are
//     the stack's.
//   - The operator's Deployment has no replicas. Package install tells what stands for its Pod.
package clusterctl
