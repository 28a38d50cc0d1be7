// SPDX-License-Identifier: Apache-2.0

// Package pattern decides what a KarpenterMachineTemplate takes from the MachineDeployment that its
// spec.template.from names, which is its pattern. It is pure.
//
// The machinetemplate controller observes the pattern and writes the result to status.from, together
// with the conditions and the examination that belong to it. Everything else reads templates with
// operator.Clusters.Template, which resolves them with that status: a template then looks as if its
// fields had been written out. So all parts of the operator see the same content, also after a
// restart, and a pattern that is deleted changes nothing.
//
// FromHash of a template identifies the content. What is remembered for a generation of a template is
// remembered for its generation and FromHash.
package pattern
