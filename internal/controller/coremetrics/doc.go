// SPDX-License-Identifier: Apache-2.0

// Package coremetrics makes Karpenter core's metrics cheap. Names, labels, help and values of all series stay the same.
// Setup passes each of core's controllers to Replace:
//
//   - status: the controllers of conditions (operatorpkg: status/controller.go) delete the series of an object by a
//     search through those of all objects, and reconcile each object every 10 s because durations grow. Here their
//     gauges find the series of an object by its name and compute durations when they are scraped, so the controllers
//     reconcile only when an object changes. Most events of a Node are heartbeats, which change nothing that they read.
//   - nodes: metrics.node (karpenter: pkg/controllers/metrics/node/controller.go) copies all Nodes every 5 s and compares
//     the series of each with one another. Here the series are computed when they are scraped.
//   - metrics.pod (karpenter: pkg/controllers/metrics/pod/controller.go) stays. Its gauges of unbound Pods, which it
//     also searches, are replaced.
//
// As in core, only the leader has series. The package stores and writes nothing: after a restart the series are computed
// from the caches.
//
// One difference remains. If a label of a terminating object changes, operatorpkg forgets the series with the old label,
// whose duration then stops. Here it grows until the object is deleted.
package coremetrics
