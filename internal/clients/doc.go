// SPDX-License-Identifier: Apache-2.0

// Package clients has the clients, caches and indexes of both clusters, and what all parts of the operator ask them: the
// served Cluster, a template with what it takes from the MachineDeployment that it follows, and whether the clusters can be
// relied on.
//
// The workload cluster has Pods, Nodes, NodePools, NodeClaims and templates. The management
// cluster has Cluster API's objects. Both can be the same API server, but there are always
// two clients and two caches.
package clients
