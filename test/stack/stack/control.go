// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"strings"
)

// StopComponent ends one process of the stack in order.
func (s *Stack) StopComponent(ctx context.Context, name string) error {
	return s.end(ctx, name, process.stop)
}

// KillComponent ends one process of the stack at once, as a crash does.
func (s *Stack) KillComponent(ctx context.Context, name string) error {
	return s.end(ctx, name, process.kill)
}

func (s *Stack) end(ctx context.Context, name string, how func(process, context.Context) error) error {
	c, err := s.Component(name)
	if err != nil {
		return err
	}
	p, ok := findProcess(s.state, c.PIDFile)
	if !ok {
		return fmt.Errorf("%s does not run", name)
	}
	return how(p, ctx)
}

// StartComponent starts a process of the stack that was stopped or has died, as it was started before, and waits until
// it is ready. Of a control plane, all processes that do not run are started.
func (s *Stack) StartComponent(ctx context.Context, name string) error {
	c, err := s.Component(name)
	if err != nil {
		return err
	}
	if _, ok := findProcess(s.state, c.PIDFile); ok {
		return fmt.Errorf("%s runs already", name)
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

// withoutRoles leaves a check out that an API server passes when it has looked at each of its own roles. They are there
// since it ran for the first time, and while all its clients come back at once, looking takes minutes.
const withoutRoles = "?exclude=poststarthook/rbac/bootstrap-roles"
