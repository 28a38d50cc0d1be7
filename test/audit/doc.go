// SPDX-License-Identifier: Apache-2.0

// Package audit reads kube-apiserver's audit log: who asked for what, when, and with what answer. The chaos test asks it
// who deleted a Machine, and whether the operator wrote anything.
//
// The log has a line for each request that was answered, without the objects. A request that was on its way when
// kube-apiserver was killed is not in it, though it may have been carried out. For what became of the objects see
// package history.
package audit
