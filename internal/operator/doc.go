// SPDX-License-Identifier: Apache-2.0

// Package operator sets up what all parts of the binary share: its options, the manager,
// the two clusters with a client and a cache each, and their indexes.
//
// The workload cluster has Pods, Nodes, NodePools, NodeClaims and templates. The management
// cluster has Cluster API's objects. Both can be the same API server, but there are always
// two clients and two caches.
//
// This package creates the manager, instead of Karpenter's operator.NewOperator, because
// that function reads the arguments of the process and panics on errors. It cannot be
// tested, and the address on which it listens cannot be set.
package operator
