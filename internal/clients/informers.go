// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"errors"
	"fmt"
	"time"

	"github.com/samber/lo"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// informers are several informers as one: of the objects with a label, and of those without it.
type informers []cache.Informer

// registrations are those of a handler with each of the informers.
type registrations []toolscache.ResourceEventHandlerRegistration

// AddEventHandler implements cache.Informer.
func (i informers) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (i informers) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i informers) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	var all registrations
	for _, informer := range i {
		registration, err := informer.AddEventHandlerWithOptions(handler, options)
		if err != nil {
			return nil, errors.Join(err, i.RemoveEventHandler(all))
		}
		all = append(all, registration)
	}
	return all, nil
}

// RemoveEventHandler implements cache.Informer.
func (i informers) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	all, own := handle.(registrations)
	if !own {
		return fmt.Errorf("the registration %T is of another informer", handle)
	}
	var errs []error
	for n, registration := range all {
		errs = append(errs, i[n].RemoveEventHandler(registration))
	}
	return errors.Join(errs...)
}

// AddIndexers implements cache.Informer.
func (i informers) AddIndexers(indexers toolscache.Indexers) error {
	return errors.Join(lo.Map(i, func(informer cache.Informer, _ int) error { return informer.AddIndexers(indexers) })...)
}

// HasSynced implements cache.Informer.
func (i informers) HasSynced() bool {
	return lo.EveryBy(i, cache.Informer.HasSynced)
}

// HasSyncedChecker implements cache.Informer.
func (i informers) HasSyncedChecker() toolscache.DoneChecker {
	return checkers(lo.Map(i, func(informer cache.Informer, _ int) toolscache.DoneChecker { return informer.HasSyncedChecker() }))
}

// IsStopped implements cache.Informer.
func (i informers) IsStopped() bool {
	return lo.EveryBy(i, cache.Informer.IsStopped)
}

// HasSynced implements ResourceEventHandlerRegistration.
func (r registrations) HasSynced() bool {
	return lo.EveryBy(r, toolscache.ResourceEventHandlerRegistration.HasSynced)
}

// HasSyncedChecker implements ResourceEventHandlerRegistration.
func (r registrations) HasSyncedChecker() toolscache.DoneChecker {
	return checkers(lo.Map(r, func(registration toolscache.ResourceEventHandlerRegistration, _ int) toolscache.DoneChecker {
		return registration.HasSyncedChecker()
	}))
}

// checkers are done when all of them are.
type checkers []toolscache.DoneChecker

// Name implements DoneChecker.
func (c checkers) Name() string { return c[0].Name() }

// Done implements DoneChecker.
func (c checkers) Done() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, checker := range c {
			<-checker.Done()
		}
	}()
	return done
}
