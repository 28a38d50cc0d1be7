// SPDX-License-Identifier: Apache-2.0

// Package failure determines, from a Machine and from the infrastructure provider's own
// object, whether a machine could not be launched, and why: insufficient capacity,
// exceeded quota, or another failure that does not end by itself. It also determines whether
// the instance of a Machine with a Node no longer exists.
//
// It is pure. A reason or message that it does not know is not a failure, because
// providers retry, and the operator has a launch timeout for machines that never appear.
// docs/failures.md has the same patterns for users, and a test compares the two.
package failure
