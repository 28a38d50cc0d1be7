// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"sync"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Stacks that start at the same time in one process use the same scheme. Concurrent writes of its maps end the process.
func TestNewSchemeOfSeveralStacks(t *testing.T) {
	var stacks sync.WaitGroup
	for range 8 {
		stacks.Go(func() {
			for range 200 {
				scheme, err := NewScheme()
				if err != nil {
					t.Error(err)
					return
				}
				if !scheme.Recognizes(clusterv1.GroupVersion.WithKind("Machine")) {
					t.Error("the scheme has no Machines")
				}
			}
		})
	}
	stacks.Wait()
}
