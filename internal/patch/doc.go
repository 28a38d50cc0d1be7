// SPDX-License-Identifier: Apache-2.0

// Package patch applies a KarpenterMachineTemplate's patches to a base template. They have
// the form of a ClusterClass's inline patches (Cluster API: exp/topology/desiredstate, and
// its book: tasks/experimental-features/cluster-class/write-clusterclass.md), but other
// variables. The package is pure.
package patch
