// SPDX-License-Identifier: Apache-2.0

// Package clusterctl tests that clusterctl installs the operator as docs/installation/clusterctl.md describes, on the
// local stack. Run it with make test-install-clusterctl.
//
// Fake kubelets run no containers and nothing is downloaded, so some parts have substitutes:
//
//   - Cluster API's core provider is installed from its Go module. Its Deployment has no replicas: the stack's process
//     replaces it, and the webhooks and conversions still use that process.
//   - Only the CustomResourceDefinitions of cert-manager are installed. Its certificates are not needed, because the
//     stack has its own webhooks.
//   - The operator's Deployment has no replicas. Package install describes what replaces its Pod.
package clusterctl
