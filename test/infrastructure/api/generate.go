// SPDX-License-Identifier: Apache-2.0

// Package api holds the kinds of the simulated infrastructure provider.
//
// Deep copies and CRDs are generated: run `go generate ./test/infrastructure/api` after `bin/controller-gen` was built.
package api

//go:generate ../../../bin/controller-gen object:headerFile=../../../hack/boilerplate.go.txt crd paths=./... output:crd:artifacts:config=../config/crd
