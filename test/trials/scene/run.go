// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// Run runs a trial on its own stack, and prints the last line, with what the trial returns. With keep, the stack is left
// up.
func Run(ctx context.Context, name string, options stack.Options, keep bool, trial func(context.Context, *stack.Stack) (string, error)) error {
	began := time.Now()
	fmt.Println("==> a local stack: Kubernetes, Cluster API, simulated machines and the operator")
	options.Dir, options.Progress = filepath.Join(".stack", name), os.Stdout
	on, err := stack.Up(ctx, options)
	if running := (*stack.RunningError)(nil); errors.As(err, &running) {
		return fmt.Errorf("%w\nstop it: %s", err, stack.Command("down", running.Dir))
	}
	if err != nil {
		return err
	}
	result, err := trial(ctx, on)
	if err != nil {
		err = fmt.Errorf("%w\nThe logs are in %s", err, on.LogDir())
	}
	if keep && ctx.Err() == nil {
		on.Detach()
		fmt.Printf("\nThe stack is still running: export KUBECONFIG=%s\nStop it with: %s\n", on.Kubeconfig(), stack.Command("down", on.Dir()))
	} else {
		fmt.Println("\n==> stop the stack")
		err = errors.Join(err, on.Down(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s: ok %s seconds=%.0f\n", name, result, time.Since(began).Seconds())
	return nil
}
