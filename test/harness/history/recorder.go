// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Recorder checks changes as they arrive, and logs their descriptions. It is safe for concurrent use.
type Recorder struct {
	mutex   sync.Mutex
	checker *Checker
	log     io.Writer
	failed  error
}

// NewRecorder returns a recorder that writes to the log.
func NewRecorder(rules Rules, log io.Writer) *Recorder {
	return &Recorder{checker: NewChecker(rules), log: log}
}

// Observe checks and logs the next change.
func (r *Recorder) Observe(change Change) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known, lost := len(r.checker.violations), len(r.checker.losses)
	before := r.checker.Observe(change)
	if line := r.checker.Describe(change, before); line != "" {
		r.print(line)
	}
	for _, violation := range r.checker.violations[known:] {
		r.print("VIOLATION " + violation.String())
	}
	for _, loss := range r.checker.losses[lost:] {
		r.print("LOSS " + loss.String())
	}
}

func (r *Recorder) print(line string) {
	if _, err := fmt.Fprintln(r.log, line); err != nil && r.failed == nil {
		r.failed = fmt.Errorf("writing the history: %w", err)
	}
}

// Violations returns the violations so far, and an error if the log is incomplete.
func (r *Recorder) Violations() ([]Violation, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.checker.Violations(), r.failed
}

// Losses returns the wrong deletions that are no violations if Cluster API did them: see Checker.Losses.
func (r *Recorder) Losses() []Violation {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.checker.Losses()
}

// End returns what must not exist when everything has settled.
func (r *Recorder) End() []Violation {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.checker.End()
}

// Claims returns how many claims ever existed.
func (r *Recorder) Claims() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.checker.Claims()
}

// Requested returns how many Machines ever existed that replicas asked for: see Checker.Requested.
func (r *Recorder) Requested() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.checker.Requested()
}

// UIDs returns the sorted UIDs of all existing objects of a kind.
func (r *Recorder) UIDs(kind Kind) []types.UID {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.checker.UIDs(kind)
}
