// SPDX-License-Identifier: Apache-2.0

// Package pendingpods reports on Pods that wait why the NodePools that they could use launch nothing. Karpenter core leaves out
// NodePools that are not ready, and only logs that (karpenter: pkg/controllers/provisioning/provisioner.go, NewScheduler). The
// NodePool has the reason of its KarpenterMachineTemplate.
//
// A Pod is looked at when kube-scheduler finds no Node for it, when a NodePool gets another reason for not being ready, and again
// every 15 minutes. It gets an event if all NodePools that it could use are not ready. If one is ready, core reports why no
// Node fits. A reconcile reads only the Pod and the NodePools, from the cache.
//
// The package stores nothing. After a restart, a Pod that still waits can get its event again.
package pendingpods
