// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/ask"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// lookWithin is how long a command of the kubectl plugin may take.
const lookWithin = 10 * time.Second

// look returns the commands of the kubectl plugin that show a stack, each with what it prints.
func (s *story) look(ctx context.Context) (string, error) {
	var text strings.Builder
	for _, name := range []string{"tree", "cost"} {
		limited, cancel := context.WithTimeout(ctx, lookWithin)
		out, _, err := ask.Run(limited, s.Stack, name)
		cancel()
		if err != nil {
			return "", fmt.Errorf("kubectl karpenter-capi %s: %w", name, err)
		}
		fmt.Fprintf(&text, "\n$ kubectl karpenter-capi %s\n%s", name, out)
	}
	return text.String(), nil
}

// live returns the command that shows the tree of a stack whenever it changes.
func live(on *stack.Stack) string {
	return "kubectl-karpenter_capi tree --watch " + strings.Join(ask.Flags(on), " ")
}
