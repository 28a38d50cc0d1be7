// SPDX-License-Identifier: Apache-2.0

// Package operator starts the binary: it reads the options, checks that both clusters can be used, and wires the manager
// with package clients.
//
// This package creates the manager, instead of Karpenter's operator.NewOperator, because
// that function reads the arguments of the process and panics on errors. It cannot be
// tested, and the address on which it listens cannot be set.
package operator
