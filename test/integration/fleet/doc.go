// SPDX-License-Identifier: Apache-2.0

// Package fleet shows that an operator costs the same however many other Clusters share its namespace. It
// starts the operator with all its controllers, against a real API server.
//
// TestMemory measures the live heap of an operator without other Clusters and with 5,000 Machines of them.
// TestCache shows which objects the cache has. End to end, TestFleet in test/e2e runs two operators in one
// namespace.
package fleet
