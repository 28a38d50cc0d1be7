// SPDX-License-Identifier: Apache-2.0

// Package stack runs a complete system on this machine, without a container: one or two Kubernetes control planes, the
// Cluster API controllers, the simulated infrastructure provider and the operator, each as a separate process on
// 127.0.0.1.
//
// A stack lives in a state folder. Up starts one that belongs to the calling process: when that process ends, even if
// it is killed, the stack ends too. After Detach the stack outlives the process; Open finds it again; Down stops it.
//
// The state of a stack is in files: stack.json lists its parts, and one file for each process has its id. So any
// process can inspect or stop a stack, even if the process that started it has ended.
package stack
