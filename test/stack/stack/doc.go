// SPDX-License-Identifier: Apache-2.0

// Package stack runs a whole system on this machine, without a container: one or two Kubernetes control planes, the
// Cluster API controllers, the simulated infrastructure provider and the operator, each a process of its own on
// 127.0.0.1.
//
// A stack lives in a state folder. Up starts one that belongs to the calling process: when that ends, even if it is
// killed, the stack ends too. Detach lets it outlive the process; Open finds it again; Down stops it.
//
// What is known of a stack is in files: stack.json says what it is made of, a file per process says its id. So any
// process can look at a stack or stop it, whatever became of the one that started it.
package stack
