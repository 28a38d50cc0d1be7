// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// process runs a program in place of a container. A kubelet starts a container again whose process has ended. Of an operator
// only the loss of its lease is a reason to end, which happens if this machine is busy.
type process struct {
	path                   string
	arguments, environment []string
	// log gets the output of all processes, and pid the ID of the last one: the stack's guard finds it by this file if the test
	// is killed.
	log, pid string

	stop context.CancelFunc
	// ended is closed when no more process will run. After that, failure is why, if it was not by Stop.
	ended   chan struct{}
	failure error
}

// graceful is how long a process has to end before it is killed, as with a kubelet.
const graceful = 30 * time.Second

// start starts the first process.
func (p *process) start() error {
	ctx, stop := context.WithCancel(context.Background())
	p.stop, p.ended = stop, make(chan struct{})
	first, err := p.next(ctx)
	if err != nil {
		return err
	}
	go func() {
		defer close(p.ended)
		p.failure = p.follow(ctx, first)
	}()
	return nil
}

// next starts a process.
func (p *process) next(ctx context.Context) (*exec.Cmd, error) {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // The process has it open.
	next := exec.CommandContext(ctx, p.path, p.arguments...)
	next.Env, next.Stdout, next.Stderr = p.environment, log, log
	next.Cancel = func() error { return next.Process.Signal(syscall.SIGTERM) }
	next.WaitDelay = graceful
	if err := next.Start(); err != nil {
		return nil, err
	}
	return next, os.WriteFile(p.pid, []byte(strconv.Itoa(next.Process.Pid)), 0o600)
}

// follow starts a process again whenever it has lost its lease, and returns when one has ended otherwise.
func (p *process) follow(ctx context.Context, running *exec.Cmd) error {
	for {
		ended := running.Wait()
		if ctx.Err() != nil {
			if status, ok := running.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
				return fmt.Errorf("it did not end within %s", graceful)
			}
			return nil
		}
		if !p.lostLease() {
			return errors.Join(fmt.Errorf("it has ended; see %s", p.log), ended)
		}
		next, err := p.next(ctx)
		switch {
		case err == nil:
			running = next
		case ctx.Err() != nil:
			return nil // by Stop
		default:
			return err
		}
	}
}

// lostLease returns whether the last process has lost its lease: controller-runtime writes the first text then
// (pkg/manager/internal.go), and the operator the second (internal/operator/lease.go).
func (p *process) lostLease() bool {
	log, _ := os.ReadFile(p.log)
	end := log[max(0, len(log)-4096):]
	return bytes.Contains(end, []byte("leader election lost")) || bytes.Contains(end, []byte("this process no longer leads"))
}

// Stop ends the process gracefully, as a kubelet does, and returns why it had ended before, or that it had to be killed.
func (p *process) Stop() error {
	p.stop()
	<-p.ended
	return p.failure
}
