// SPDX-License-Identifier: Apache-2.0

// Package upgrade tests that an upgrade of the operator, and the way back, changes no Node, NodeClaim, Machine or link, while
// Nodes run and others are being launched. Package install describes what replaces the operator's Pod. Run it with
// make test-install-upgrade.
package upgrade
