// SPDX-License-Identifier: Apache-2.0

// Package pattern decides what a KarpenterMachineTemplate takes from the MachineDeployment that its
// spec.template.from names, which is its pattern. It is pure.
//
// Everything reads templates with clients.Clusters.Template, which reads the pattern from the cache and
// resolves them with it: a template then looks as if its fields had been written out. The machinetemplate
// controller examines what is generated with the pattern, and writes its name and hash to status.from,
// together with the conditions that belong to it. A template whose pattern has another hash, or cannot be
// used, is Pending.
//
// FromHash of a template identifies the content. What is remembered for a generation of a template is
// remembered for its generation and FromHash.
package pattern
