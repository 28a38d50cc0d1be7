// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// folder is a state folder; its methods name what is in it.
type folder string

func (f folder) path(elem ...string) string {
	return filepath.Join(append([]string{string(f)}, elem...)...)
}

func (f folder) logs() string         { return f.path("logs") }
func (f folder) pids() string         { return f.path("pids") }
func (f folder) kwok() string         { return f.path("kwok") }
func (f folder) certificates() string { return f.path("certificates") }
func (f folder) record() string       { return f.path("stack.json") }
func (f folder) kubeconfig() string   { return f.path("kubeconfig") }
func (f folder) managementKubeconfig() string {
	return f.path("management.kubeconfig")
}

// create makes the folders of a new stack. The logs of an earlier one go.
func (f folder) create() error {
	if err := errors.Join(f.clear(), os.RemoveAll(f.logs())); err != nil {
		return err
	}
	for _, dir := range []string{f.logs(), f.pids(), f.kwok(), f.certificates()} {
		// Keys are in there.
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// clear removes all that is of use only while the stack runs: everything but the logs. What is not the stack's own
// stays, so that another stack's state folder may be in this one.
func (f folder) clear() error {
	var errs []error
	for _, path := range []string{
		f.kubeconfig(), f.managementKubeconfig(), f.certificates(), f.kwok(), f.pids(),
		// The last one: while it is there, an interrupted clear is found and finished.
		f.record(),
	} {
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errs...)
}

// lock makes sure that one process at a time starts or stops a stack in the folder. The lock goes with the process.
func (f folder) lock() (*os.File, error) {
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		return nil, err
	}
	dir, err := os.Open(string(f))
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return dir, nil
	}
	_ = dir.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &BusyError{Dir: string(f)}
	}
	return nil, fmt.Errorf("locking %s: %w", f, err)
}

// BusyError says that another process starts or stops the stack, or owns it.
type BusyError struct {
	Dir string
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("another process works with the stack in %s, or owns it; wait for it, or stop it", e.Dir)
}

// RunningError says that a stack runs in the folder already.
type RunningError struct {
	Dir            string
	Running, Total int
}

// Error implements error.
func (e *RunningError) Error() string {
	return fmt.Sprintf("a stack runs already in %s (%d of its %d processes)", e.Dir, e.Running, e.Total)
}

// NotFoundError says that there is no stack in the folder.
type NotFoundError struct {
	Dir string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no stack in %s", e.Dir)
}
