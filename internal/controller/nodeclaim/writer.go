// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
)

const (
	// writers is how many links are written at once. A link is one read and one write, and all claims
	// of a burst usually have one scalable resource, because Karpenter takes the cheapest offering.
	writers = 20
	// linkTimeout limits the read and the write of a link.
	linkTimeout = 30 * time.Second
)

// writer writes links while reconciles continue, so that no claim waits for the link of another. Until
// a link is written, its claim and its Machine are left out of the snapshots of their resource: the
// plan for others does not depend on them, and neither can be linked a second time. After an error,
// they are left out until it is time to try again.
type writer struct {
	slots chan struct{}
	retry workqueue.TypedRateLimiter[types.UID]
	// ended has the resource of each link that has ended. It is reconciled again, because the reconciles
	// in between have left out the claim and the Machine.
	ended chan event.TypedGenericEvent[string]

	mu sync.Mutex
	// inFlight has the UIDs of claims and Machines by resource.
	inFlight map[string]map[types.UID]bool
}

func newWriter() *writer {
	return &writer{
		slots:    make(chan struct{}, writers),
		retry:    workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](enqueue.MinRetry, enqueue.MaxRetry),
		ended:    make(chan event.TypedGenericEvent[string]),
		inFlight: map[string]map[types.UID]bool{},
	}
}

// source returns the events of ended links.
func (w *writer) source(spacing *enqueue.Spacing) source.TypedSource[reconcile.Request] {
	return source.TypedChannel(w.ended, spacing.Named())
}

// busy returns the claims and Machines of a resource whose link is being written.
func (w *writer) busy(resource string) sets.Set[types.UID] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sets.New(slices.Collect(maps.Keys(w.inFlight[resource]))...)
}

// start calls write for the link of a claim and a Machine, and returns at once. After an error, the writer
// waits before the next attempt.
func (w *writer) start(ctx context.Context, resource string, claim, machine types.UID, write func(context.Context) error) {
	w.set(resource, true, claim, machine)
	go func() {
		w.slots <- struct{}{}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), linkTimeout)
		err := write(ctx)
		cancel()
		<-w.slots
		if err == nil {
			w.retry.Forget(claim)
		} else {
			<-time.After(w.retry.When(claim))
		}
		w.set(resource, false, claim, machine)
		w.ended <- event.TypedGenericEvent[string]{Object: resource}
	}()
}

func (w *writer) set(resource string, busy bool, uids ...types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inFlight[resource] == nil {
		w.inFlight[resource] = map[types.UID]bool{}
	}
	for _, uid := range uids {
		if busy {
			w.inFlight[resource][uid] = true
		} else {
			delete(w.inFlight[resource], uid)
		}
	}
	if len(w.inFlight[resource]) == 0 {
		delete(w.inFlight, resource)
	}
}
