// SPDX-License-Identifier: Apache-2.0

// Package scene is what the trials on a local stack have in common, such as chaos and partition: offerings with
// Deployments that use them, the history of claims and Machines, and the wait until everything has settled.
package scene
