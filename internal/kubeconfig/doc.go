// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig makes clients follow a kubeconfig file. A mounted Secret changes while the operator runs: Cluster API
// renews the certificate in the Secret of a Cluster, and administrators renew tokens. Requests that begin after a change use
// the new content. Requests that began before it, such as watches, go on, so a change costs neither a restart nor a relist.
//
// The kubelet updates the file, so the operator needs no right to read Secrets. Inspect shows the kubectl plugin what the kubeconfig
// in such a Secret says about its credentials.
package kubeconfig
