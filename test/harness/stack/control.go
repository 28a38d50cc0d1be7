// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"strings"
	"syscall"
)

// StopComponent stops one process of the stack gracefully.
func (s *Stack) StopComponent(ctx context.Context, name string) error {
	return s.affect(ctx, name, process.stop)
}

// KillComponent kills one process of the stack, as a crash does.
func (s *Stack) KillComponent(ctx context.Context, name string) error {
	return s.affect(ctx, name, process.kill)
}

// PauseComponent stops the execution of one process of the stack, until ResumeComponent. It answers nothing meanwhile,
// and its connections stay open.
func (s *Stack) PauseComponent(ctx context.Context, name string) error {
	return s.affect(ctx, name, func(p process, _ context.Context) error { return p.signal(syscall.SIGSTOP) })
}

// ResumeComponent continues a process after PauseComponent.
func (s *Stack) ResumeComponent(ctx context.Context, name string) error {
	return s.affect(ctx, name, func(p process, _ context.Context) error { return p.signal(syscall.SIGCONT) })
}

func (s *Stack) affect(ctx context.Context, name string, how func(process, context.Context) error) error {
	c, err := s.Component(name)
	if err != nil {
		return err
	}
	p, ok := findProcess(s.state, c.PIDFile)
	if !ok {
		return fmt.Errorf("%s is not running", name)
	}
	return how(p, ctx)
}

// StartComponent starts a process of the stack that was stopped or has ended, with its original command, and waits
// until it is ready. For a process of a control plane, it starts all processes of that control plane that do not run.
func (s *Stack) StartComponent(ctx context.Context, name string) error {
	c, err := s.Component(name)
	if err != nil {
		return err
	}
	if _, ok := findProcess(s.state, c.PIDFile); ok {
		return fmt.Errorf("%s is already running", name)
	}
	if c.ControlPlane != "" {
		err = s.startControlPlaneAgain(ctx, c.ControlPlane)
	} else {
		err = startProcess(c.Command, c.Env, c.LogFile, c.PIDFile)
	}
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	again := *c
	if strings.TrimPrefix(name, ManagementPrefix) == APIServer {
		again.HealthURL += withoutRoles
	}
	return Await(ctx, readyTimeout, name+" to be ready", func(ctx context.Context) (bool, string, error) {
		ready, found := again.probe(ctx)
		return ready, found, s.checkAlive([]*Component{c})
	})
}

// withoutRoles omits the check that passes when an API server has read each of its own roles. They exist since its
// first start, and reading them takes minutes while all clients reconnect at once.
const withoutRoles = "?exclude=poststarthook/rbac/bootstrap-roles"
