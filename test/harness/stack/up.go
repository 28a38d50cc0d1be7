// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/samber/lo"
)

const readyTimeout = 90 * time.Second

// Up starts a stack and waits until it is ready. It belongs to this process: Down or Detach must follow. If something
// fails, or the context ends, Up stops everything that it started and keeps the logs.
func Up(ctx context.Context, opts Options) (*Stack, error) {
	m, err := findModules(ctx)
	if err != nil {
		return nil, err
	}
	if err := opts.complete(m); err != nil {
		return nil, err
	}
	if opts.ClusterAPI != "" {
		m.clusterAPI, m.clusterAPIVersion = opts.clusterAPIDir(), opts.ClusterAPI
	}
	s, err := claim(&opts)
	if err != nil {
		return nil, err
	}
	s.record.ClusterAPI = m.clusterAPIVersion
	b := &builder{Stack: s, opts: &opts, modules: m}
	if err := b.build(ctx); err != nil {
		// The context can have ended.
		return nil, errors.Join(err, s.Down(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// claim takes the state folder, which must have no running stack, for a new one.
func claim(opts *Options) (*Stack, error) {
	state := folder(opts.Dir)
	lock, err := state.lock()
	if err != nil {
		return nil, err
	}
	s := &Stack{state: state, lock: lock, record: record{
		Owner: os.Getpid(), BinDir: opts.BinDir, Placement: opts.Placement, ControlPlanes: map[string][]string{},
	}}
	err = func() error {
		if earlier, err := Open(opts.Dir); err == nil {
			if running := earlier.running(); running > 0 {
				return &RunningError{Dir: opts.Dir, Running: running, Total: len(earlier.record.Components)}
			}
		}
		if err := state.create(); err != nil {
			return err
		}
		if s.guard, err = startGuard(state); err != nil {
			return fmt.Errorf("starting the stack's guard: %w", err)
		}
		return s.save()
	}()
	if err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// release ends the ownership.
func (s *Stack) release() {
	s.guard.leave()
	s.guard = nil
	if s.lock != nil {
		_ = s.lock.Close()
		s.lock = nil
	}
}

// Detach lets the stack outlive this process.
func (s *Stack) Detach() {
	s.release()
}

// builder is a stack that is being built.
type builder struct {
	*Stack
	opts    *Options
	modules *modules
	ports   []int
	hooks   map[string]*webhooks // of each manager of Cluster API and of a provider, by its component
}

// The ports outside of the control planes: webhooks, health and diagnostics of three managers of Cluster API and of a provider, the
// simulated provider's health, the operator's health and metrics.
const portsBesides = 15

func (b *builder) build(ctx context.Context) error {
	var err error
	if b.ports, err = FreePorts(2*portsPerControlPlane + portsBesides); err != nil {
		return err
	}
	for _, step := range b.steps() {
		start := time.Now()
		_, _ = fmt.Fprintf(b.opts.Progress, "  %-26s", step.name)
		if err := step.run(ctx); err != nil {
			_, _ = fmt.Fprintln(b.opts.Progress, "failed")
			return err
		}
		_, _ = fmt.Fprintf(b.opts.Progress, "ready after %.1fs\n", time.Since(start).Seconds())
	}
	return nil
}

// step is a part of a stack, and how it starts.
type step struct {
	name string
	run  func(context.Context) error
}

func (b *builder) steps() []step {
	controlPlanes := lo.Ternary(b.opts.Placement.Separate(), "two control planes", "control plane")
	if b.opts.Manages != nil || b.opts.NeighbourOf != nil {
		controlPlanes = "another control plane"
	}
	steps := []step{
		{controlPlanes, b.startControlPlanes},
		{"custom resources", b.createAPIs},
	}
	if b.opts.NeighbourOf == nil {
		steps = append(steps, step{"Cluster API", b.startClusterAPI})
		if b.opts.Kubeadm {
			steps = append(steps, step{"kubeadm bootstrap provider", b.startKubeadmBootstrap})
		}
		if b.opts.Topology {
			steps = append(steps, step{"kubeadm control plane", b.startKubeadmControl})
		}
	}
	if b.opts.Provider != nil {
		steps = append(steps, step{"infrastructure provider", b.startProvider})
	}
	steps = append(steps, step{"simulated infrastructure", b.startInfrastructure})
	if b.opts.Manages == nil {
		steps = append(steps, step{"Cluster " + ClusterNamespace + "/" + b.opts.clusterName(), b.createCluster})
	}
	return append(steps, step{lo.Ternary(b.opts.WithoutOperator, "operator (not started)", "operator"), b.startOperator})
}

// take removes ports from the free ones.
func (b *builder) take(count int) []int {
	taken := b.ports[:count]
	b.ports = b.ports[count:]
	return taken
}

// start starts a component by its command, and waits until it is ready.
func (b *builder) start(ctx context.Context, c *Component) error {
	b.record.Components = append(b.record.Components, c)
	if err := b.save(); err != nil {
		return err
	}
	if err := startProcess(c.Command, c.Env, c.LogFile, c.PIDFile); err != nil {
		return fmt.Errorf("starting %s: %w", c.Name, err)
	}
	return b.awaitReady(ctx, c)
}

// awaitReady waits until components are ready.
func (s *Stack) awaitReady(ctx context.Context, components ...*Component) error {
	for _, c := range components {
		err := s.Await(ctx, readyTimeout, c.Name+" to be ready", func(ctx context.Context) (bool, string, error) {
			ready, found := c.probe(ctx)
			return ready, found, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Await waits as the function Await does, but fails when a process of the stack has ended, and returns its log.
func (s *Stack) Await(ctx context.Context, timeout time.Duration, what string, check Check) error {
	return Await(ctx, timeout, what, func(ctx context.Context) (bool, string, error) {
		if err := s.checkAlive(s.record.Components); err != nil {
			return false, "", err
		}
		return check(ctx)
	})
}

// checkAlive returns an error with the log of a process that has ended.
func (s *Stack) checkAlive(components []*Component) error {
	for _, c := range components {
		if _, ok := findProcess(s.state, c.PIDFile); !ok {
			return fmt.Errorf("%s has ended; the last lines of %s:\n%s", c.Name, c.LogFile, indent(c.LogTail(20)))
		}
	}
	return nil
}
