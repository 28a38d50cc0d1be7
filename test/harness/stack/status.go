// SPDX-License-Identifier: Apache-2.0

package stack

import "context"

// ComponentStatus is the state of one component.
type ComponentStatus struct {
	Component

	// PID is its process id, 0 if it does not run.
	PID int

	// Ready is whether it reports that it is ready.
	Ready bool

	// State describes its state.
	State string
}

// Status returns the state of all components.
func (s *Stack) Status(ctx context.Context) []ComponentStatus {
	statuses := make([]ComponentStatus, 0, len(s.record.Components))
	for _, c := range s.record.Components {
		status := ComponentStatus{Component: *c, State: "not running"}
		if p, ok := findProcess(s.state, c.PIDFile); ok {
			status.PID = p.pid
			status.Ready, status.State = c.probe(ctx)
		}
		statuses = append(statuses, status)
	}
	return statuses
}
