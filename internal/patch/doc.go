// SPDX-License-Identifier: Apache-2.0

// Package patch applies a KarpenterMachineTemplate's patches to a base template. They have
// the form of a ClusterClass's inline patches (Cluster API: exp/topology/desiredstate, and
// its book: tasks/experimental-features/cluster-class/write-clusterclass.md), but other
// variables. The package is pure.
//
// Anyone who can create a template writes Go templates, and they stay in the API server. They therefore end in time, in
// little memory, and render to the same each time, by these rules:
//
//   - Go templates use only functions whose results depend on nothing but their arguments, in one order (functions.go). They
//     cannot include each other.
//   - A range is over a list or a map, and each of its items takes work from a budget, in proportion to the text of the range
//     (check.go). Everything else in a Go template is executed once.
//   - A value has at most 64 KiB, where what it contains twice counts twice, and so have the arguments of a function together.
//     Functions that build larger results compute the size first (strings.go). Arguments and results take work from the
//     same budget (limits.go). No function changes a value, so none contains itself.
//   - The text of a Go template, that of all of them for an offering, and all patches together have limits (limits.go).
//   - Rendered YAML has no aliases and little depth (yaml.go).
package patch
