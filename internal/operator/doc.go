// SPDX-License-Identifier: Apache-2.0

// Package operator sets up what all parts of the binary share: its options, the
// manager, the two clusters with a client and a cache each, and their indexes.
//
// The workload cluster has Pods, Nodes, NodePools, NodeClaims and templates; the
// management cluster has Cluster API's objects. They may be one and the same API
// server; they are two clients and two caches all the same.
//
// The manager is made here, and not by Karpenter's own operator.NewOperator,
// because that one reads the process's arguments and panics on what it does not
// like, so that it can be neither tested nor told which address to listen on.
package operator
