// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/test/harness/rights"
	"github.com/karpenter-capi/karpenter-capi/test/harness/rotation"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stacktest"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// usage is what the operators of all stacks have used of their rights. Tests can run at the same time.
var (
	usage      = &rights.Usage{}
	usageMutex sync.Mutex
)

// expectRights fails a test if a request of its operator was denied.
func expectRights(t *testing.T, s *stack.Stack) {
	t.Helper()
	usageMutex.Lock()
	defer usageMutex.Unlock()
	stacktest.AddUsage(t, s, usage)
}

// reportRights writes bin/rights.txt. After a run of all cases of all tests, such as `make test-e2e ROTATION=all`, it returns an error
// if rights were neither used nor explained.
func reportRights() error {
	granted, err := rights.Read(charts.Root())
	if err != nil {
		return err
	}
	explanations, err := rights.Explanations()
	if err != nil {
		return err
	}
	report := usage.Compare(granted, explanations)
	file := filepath.Join(charts.Root(), "bin", "rights.txt")
	if err := os.WriteFile(file, []byte(strings.Join(report.Lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	fmt.Printf("rights of the operator: %d, denied requests: %d, see %s\n", len(report.Lines), len(usage.Denied), file)
	// TestMonitoring, which `make test-e2e` skips, uses no rights of its own.
	skipped := flag.Lookup("test.skip").Value.String()
	chosen := flag.Lookup("test.run").Value.String() != "" || skipped != "" && !strings.Contains(skipped, "TestMonitoring")
	// Some rights are used by a single case, whose turn it need not be.
	inTurns := !rotation.Turn(2, 0) || !rotation.Turn(2, 1)
	if !chosen && !inTurns && len(report.Problems) > 0 {
		return fmt.Errorf("rights of the operator:\n%s", strings.Join(report.Problems, "\n"))
	}
	return nil
}
