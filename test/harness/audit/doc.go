// SPDX-License-Identifier: Apache-2.0

// Package audit reads kube-apiserver's audit log: who requested what, when, and with which response. The chaos test
// uses it to find out who deleted a Machine, and whether the operator wrote anything.
//
// The log has a line for each completed request, without the objects. It lacks requests that were in progress when
// kube-apiserver was killed, although they can have succeeded. Package history follows the objects.
package audit
