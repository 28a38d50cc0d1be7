// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// folder is a state folder; its methods return the paths in it.
type folder string

func (f folder) path(elem ...string) string {
	return filepath.Join(append([]string{string(f)}, elem...)...)
}

func (f folder) logs() string         { return f.path("logs") }
func (f folder) pids() string         { return f.path("pids") }
func (f folder) kwok() string         { return f.path("kwok") }
func (f folder) certificates() string { return f.path("certificates") }
func (f folder) accounts() string     { return f.path("accounts") }
func (f folder) record() string       { return f.path("stack.json") }
func (f folder) kubeconfig() string   { return f.path("kubeconfig") }
func (f folder) managementKubeconfig() string {
	return f.path("management.kubeconfig")
}

// workloadAccount and managementAccount are the kubeconfigs of a process's service account.
func (f folder) workloadAccount(name string) string {
	return filepath.Join(f.accounts(), name+".kubeconfig")
}

func (f folder) managementAccount(name string) string {
	return filepath.Join(f.accounts(), name+".management.kubeconfig")
}

// create creates the folders of a new stack and deletes the logs of an earlier one.
func (f folder) create() error {
	if err := errors.Join(f.clear(), os.RemoveAll(f.logs())); err != nil {
		return err
	}
	for _, dir := range []string{f.logs(), f.pids(), f.kwok(), f.certificates()} {
		// It contains keys.
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// clear removes everything that is needed only while the stack runs: everything except the logs. Files that do not
// belong to the stack stay, so the state folder of another stack can be in this one.
func (f folder) clear() error {
	var errs []error
	for _, path := range []string{
		f.kubeconfig(), f.managementKubeconfig(), f.accounts(), f.certificates(), f.kwok(), f.pids(),
		// It is removed last: while it exists, an interrupted clear is found and finished.
		f.record(),
	} {
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errs...)
}

// lock ensures that only one process at a time starts or stops a stack in the folder. The lock ends with the process.
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

// BusyError is the error if another process starts or stops the stack, or owns it.
type BusyError struct {
	Dir string
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("another process uses or owns the stack in %s; wait for it, or stop it", e.Dir)
}

// RunningError is the error if a stack already runs in the folder.
type RunningError struct {
	Dir            string
	Running, Total int
}

// Error implements error.
func (e *RunningError) Error() string {
	return fmt.Sprintf("a stack is already running in %s (%d of its %d processes)", e.Dir, e.Running, e.Total)
}

// NotFoundError is the error if there is no stack in the folder.
type NotFoundError struct {
	Dir string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no stack in %s", e.Dir)
}
