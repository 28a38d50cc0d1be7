// SPDX-License-Identifier: Apache-2.0

// Package failure tells from a Machine, and from the infrastructure provider's
// own object, whether a machine cannot be had, and why: no capacity, no quota, or
// anything else that ends for good.
//
// It is pure. Whatever it does not know is not a failure: providers try again, and
// the operator has a launch timeout for what never comes. docs/failures.md has
// the same patterns for users; a test compares the two.
package failure
