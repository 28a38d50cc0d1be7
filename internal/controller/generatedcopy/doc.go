// SPDX-License-Identifier: Apache-2.0

// Package generatedcopy maintains what was generated from the base templates of a
// KarpenterMachineTemplate: copies with patches and, for MachinePools, infrastructure machine
// pools and bootstrap configurations. The controller scalableresource creates them, immediately
// before the scalable resource that refers to them.
//
// It sets the scalable resources as their owners, copies the annotations that Cluster API reads
// from templates, creates objects again that a user has deleted, and deletes those that nothing
// refers to. As the last one that deletes what was generated from a template, it also removes the
// finalizer of the template, which package machinetemplate has added. It never writes an object of another Cluster or one that this operator did not
// generate. All state is in the API, so that a crash between two writes delays the rest only.
package generatedcopy
