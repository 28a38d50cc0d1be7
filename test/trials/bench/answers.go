// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/ask"
)

// answers are the commands of the kubectl plugin that are measured.
var answers = []string{"tree", "why", "offerings", "doctor", "cost"}

// answerWithin ends a command that does not end by itself.
const answerWithin = 2 * time.Minute

// answer measures for how long a user waits for each command of the kubectl plugin, in seconds.
func (t *trial) answer(ctx context.Context) (map[string]float64, error) {
	claims, pools := &karpv1.NodeClaimList{}, &karpv1.NodePoolList{}
	if err := t.Workload.List(ctx, claims, client.Limit(1)); err != nil {
		return nil, err
	}
	if err := t.Workload.List(ctx, pools, client.Limit(1)); err != nil {
		return nil, err
	}
	if len(claims.Items) == 0 || len(pools.Items) == 0 {
		return nil, fmt.Errorf("expected a NodeClaim and a NodePool to ask about, found %d and %d", len(claims.Items), len(pools.Items))
	}
	objects := map[string][]string{
		"why":       {"nodeclaim", claims.Items[0].Name},
		"offerings": {pools.Items[0].Spec.Template.Spec.NodeClassRef.Name},
	}
	taken := map[string]float64{}
	for _, name := range answers {
		limited, cancel := context.WithTimeout(ctx, answerWithin)
		began := time.Now()
		printed, _, err := ask.Run(limited, t.Stack, append([]string{name}, objects[name]...)...)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("kubectl karpenter-capi %s: %w\n%s", name, err, printed)
		}
		taken[name] = time.Since(began).Seconds()
	}
	return taken, nil
}
