// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// profiler stores CPU profiles of the operator in the state folder.
type profiler struct {
	address string
	dir     string
	name    string
}

// profileSeconds is the length of one profile. A phase has several, because its length is not known before it ends.
const profileSeconds = 5

// newProfiler returns a profiler of the operator, whose files begin with a name.
func newProfiler(on *stack.Stack, name string) *profiler {
	return &profiler{address: metricsAddress(on, stack.Operator), dir: filepath.Join(on.Dir(), "profiles"), name: name}
}

// start profiles the operator until the returned function is called, which waits until the last profile is complete.
func (p *profiler) start(ctx context.Context, phase string) (stop func() error) {
	if p == nil {
		return func() error { return nil }
	}
	stopped, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 1; ; i++ {
			if err := p.profile(ctx, fmt.Sprintf("%s-%s-%02d.pprof", p.name, phase, i)); err != nil {
				ended <- fmt.Errorf("profiling the operator: %w", err)
				return
			}
			select {
			case <-stopped:
				ended <- nil
				return
			default:
			}
		}
	}()
	return func() error {
		close(stopped)
		return <-ended
	}
}

// profile stores one profile.
func (p *profiler) profile(ctx context.Context, name string) (err error) {
	url := fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", p.address, profileSeconds)
	profile, err := fetch(ctx, url)
	if err != nil {
		return err
	}
	defer profile.Close() //nolint:errcheck // It is only read.
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(p.dir, name))
	if err != nil {
		return err
	}
	_, err = io.Copy(file, profile)
	return errors.Join(err, file.Close())
}
