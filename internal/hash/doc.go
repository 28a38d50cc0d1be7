// SPDX-License-Identifier: Apache-2.0

// Package hash computes the hashes of API objects that are stored: in names, labels, annotations and status. Of is the
// only function that computes one. docs/design/hashes.md lists where each hash is stored, and what follows from another
// version of it.
package hash
