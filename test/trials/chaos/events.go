// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
)

// withoutRepetition omits the one sort of Event that Karpenter repeats without a cause, and returns how many there are:
// that a Node cannot be consolidated. Karpenter creates it for each Node and each claim once in 15 minutes, and again
// after a restart, because it remembers them only in memory (karpenter: pkg/controllers/disruption/events/events.go,
// Unconsolidatable). They change no watched object, and expire after an hour. No configuration of a NodePool avoids
// them.
func (s *trial) withoutRepetition(ctx context.Context, writes []audit.Entry) (rest []audit.Entry, repeated int, err error) {
	list := &corev1.EventList{}
	if err := s.Workload.List(ctx, list); err != nil {
		return nil, 0, fmt.Errorf("listing Events: %w", err)
	}
	reasons := map[client.ObjectKey]string{}
	for i := range list.Items {
		reasons[client.ObjectKeyFromObject(&list.Items[i])] = list.Items[i].Reason
	}
	for _, write := range writes {
		key := client.ObjectKey{Namespace: write.ObjectRef.Namespace, Name: write.ObjectRef.Name}
		if write.Event() && reasons[key] == events.Unconsolidatable {
			repeated++
		} else {
			rest = append(rest, write)
		}
	}
	return rest, repeated, nil
}
