// SPDX-License-Identifier: Apache-2.0

//go:build suites

// Package suites pins what Karpenter's test suites are compiled with: they have only test files, which no other package can
// import.
package suites

import (
	_ "github.com/onsi/ginkgo/v2"
	_ "sigs.k8s.io/karpenter/test/pkg/environment/common"
)
