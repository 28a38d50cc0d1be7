// SPDX-License-Identifier: Apache-2.0

// Package plugin is the kubectl plugin "kubectl karpenter-capi": its commands, flags and output.
// Package importer reads the files of clouds.
//
// Nothing is written, neither to a file nor to the cluster, unless all of the input is valid. What
// apply writes is one server-side apply of one object, so that it takes effect completely or not
// at all, and a second one changes nothing.
package plugin
