// SPDX-License-Identifier: Apache-2.0

// Package view reads what commands show: the objects of both clusters, how they belong together, and the state of each.
//
// Connect fills caches with the rights of the user, and Read takes everything from them, so that a command which watches
// costs the API servers no more than one which does not. What only few commands need, such as the operator's Pods and logs, events
// and versions, is read from the API servers when it is needed. Nothing is written.
//
// A state is what the object itself shows. The rules by which the operator decides are not repeated here: View.Plan asks
// package planner, and View.InstanceTypes package catalog, both with what the user can read.
package view
