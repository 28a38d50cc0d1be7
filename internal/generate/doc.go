// SPDX-License-Identifier: Apache-2.0

// Package generate generates the objects for an offering of a template: a MachineDeployment
// or MachinePool, and the patched copies of base templates that it refers to.
//
// The name of a generated resource ends in a hash of everything that shapes its Machines, so
// a changed template leads to another resource. The operator only ever changes replicas and
// annotations of a generated resource, and never a field that Cluster API would roll out
// (core/reconcilers/machinedeployment/mdutil/util.go).
//
// LaunchOf is the one answer to what a NodeClaim gets with an offering. Examiner sends dry runs of
// all that a template generates, before any NodeClaim depends on it.
package generate
