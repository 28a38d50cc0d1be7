// SPDX-License-Identifier: Apache-2.0

// Package contract checks what the operator relies on in Cluster API, against the real controllers of each supported version.
//
// A fact is one sentence about Cluster API, with the package that relies on it. Facts lists them, and each has a check that runs
// on the local stack, without the operator, with simulated machines. A version for which a fact is known not to hold says what
// the operator does then. The check must fail there, so that the list stays true.
//
// make test-contract CAPI=v1.13.6 checks one version. make test-matrix checks all, and hack/matrix writes what they found to
// docs/compatibility.md.
package contract
