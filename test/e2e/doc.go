// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the operator's binary on the local stack: real control planes, Cluster API's own controllers and
// simulated machines. Each test has its own stack, with Cluster API in one cluster and the operator in the other one, on
// which tests in forEachKind run with each kind of scalable resource, one of them for each commit. TestPlacements has the
// other placements. Several tests run at the same time. Run them with make test-e2e.
package e2e
