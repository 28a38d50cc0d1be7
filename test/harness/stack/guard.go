// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// guardScript waits until the owner of the stack dismisses the guard or ends. If the owner has ended, it kills what is
// left of the stack, beginning with kwokctl, which can still be running.
const guardScript = `
read -r word
[ "$word" = leave ] && exit 0
for file in "$1"/pids/*.pid "$1"/kwok/clusters/*/pids/*.pid; do
	[ -f "$file" ] && kill -9 "$(cat "$file")"
done
`

// guard ends the stack when its owner was killed, or ended without Down, such as a test that exceeded its timeout.
type guard struct {
	owner io.WriteCloser
}

func startGuard(state folder) (*guard, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close() //nolint:errcheck // The guard has it open.
	cmd := exec.Command("/bin/sh", "-c", guardScript, "stack-guard", string(state))
	cmd.Stdin = read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = write.Close()
		return nil, err
	}
	go cmd.Wait() //nolint:errcheck // It only must not stay as a zombie.
	return &guard{owner: write}, nil
}

// leave dismisses the guard.
func (g *guard) leave() {
	if g == nil {
		return
	}
	_, _ = io.WriteString(g.owner, "leave\n")
	_ = g.owner.Close()
}
