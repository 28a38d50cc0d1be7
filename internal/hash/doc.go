// SPDX-License-Identifier: Apache-2.0

// Package hash computes the hashes of API objects that are part of names, labels and status. Its callers
// are packages generate, catalog and pattern, and each of them shortens the hashes to the length that it
// needs. The hashes are stored, so a change of Of is a change of the API.
package hash
