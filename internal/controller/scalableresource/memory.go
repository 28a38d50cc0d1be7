// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"sync"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// memory is what this process remembers of each resource until that no longer exists. A restart forgets it.
type memory struct {
	mu        sync.Mutex
	resources map[string]*remembered
	// progressedAt is when a Machine of any resource last progressed.
	progressedAt time.Time
}

// progressed notes when a Machine last progressed, and returns the latest such time of all resources.
func (m *memory) progressed(at time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progressedAt = lo.Latest(m.progressedAt, at)
	return m.progressedAt
}

// remembered is what this process remembers of one resource. Only its reconcile uses it, and there is one at a time.
type remembered struct {
	pace    pace
	lowered lowered
	// stalledAt is when the resource was last seen stalled. loweringTimeLeft counts from then on.
	stalledAt time.Time
	// told is when the condition MachineReady of a claim was last written because its Machine takes long.
	told map[types.UID]time.Time
	// reasons are those that were last logged.
	reasons map[string]planner.Reason
}

// of returns what is remembered of a resource.
func (m *memory) of(resource string) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.resources == nil {
		m.resources = map[string]*remembered{}
	}
	known, found := m.resources[resource]
	if !found {
		known = &remembered{}
		m.resources[resource] = known
	}
	return known
}

// forget drops a resource.
func (m *memory) forget(resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.resources, resource)
}
