// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

const (
	// patience is how long reads wait for the first objects of a watch, from its start.
	patience = 5 * time.Second
	// findAgain is after what time a kind is looked for again that does not exist. No event shows that it was installed.
	findAgain = 10 * time.Second
)

// watch is the watch of one source.
type watch struct {
	source Source
	stop   context.CancelFunc
	notify func()
	// ready is closed with the first objects, or when the first error is known.
	ready    chan struct{}
	first    sync.Once
	deadline time.Time

	mu sync.Mutex
	// err is why the objects are not known or not current; nil while the watch is open.
	err error
	// objects has the objects; nil before the kind is known.
	objects cache.SharedIndexInformer
}

// ErrStarting is why a count is not known directly after the start.
var ErrStarting = errors.New("the objects are not read yet")

// counted is what a watch keeps of an object.
type counted struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	result
}

// DeepCopyObject implements runtime.Object.
func (c *counted) DeepCopyObject() runtime.Object {
	return &counted{TypeMeta: c.TypeMeta, ObjectMeta: *c.DeepCopy(), result: c.result}
}

func (w *Watches) start(source Source) *watch {
	ctx, stop := context.WithCancel(w.ctx)
	started := &watch{source: source, stop: stop, notify: w.Notify, ready: make(chan struct{}), deadline: time.Now().Add(patience), err: ErrStarting}
	go started.run(ctx, w.client, w.mapper, w.namespace)
	return started
}

// run watches until the context ends. A kind that does not exist is looked for repeatedly.
func (s *watch) run(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, namespace string) {
	var resource dynamic.ResourceInterface
	err := wait.PollUntilContextCancel(ctx, findAgain, true, func(context.Context) (bool, error) {
		version, err := schema.ParseGroupVersion(s.source.APIVersion)
		if err != nil {
			return false, err // poolOf has parsed it
		}
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: version.Group, Kind: s.source.Kind}, version.Version)
		if err != nil {
			s.set(err)
			return false, nil
		}
		resource = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			resource = client.Resource(mapping.Resource).Namespace(lo.CoalesceOrEmpty(s.source.Namespace, namespace))
		}
		return true, nil
	})
	if err != nil {
		return // the context has ended
	}
	objects := cache.NewSharedIndexInformer(s.listWatch(client, resource), &unstructured.Unstructured{}, 0, cache.Indexers{})
	// Setting these and adding the handler fail only for an informer that runs.
	lo.Must0(objects.SetTransform(s.reduce))
	lo.Must(objects.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { s.notify() },
		UpdateFunc: func(before, after any) { s.updated(before, after) },
		DeleteFunc: func(any) { s.notify() },
	}))
	s.mu.Lock()
	s.objects = objects
	s.mu.Unlock()
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), objects.HasSynced) {
			s.settle()
			s.notify()
		}
	}()
	objects.RunWithContext(ctx)
}

// listWatch returns the requests of the watch, which record whether it is open.
func (s *watch) listWatch(client dynamic.Interface, resource dynamic.ResourceInterface) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = s.source.Selector
			list, err := resource.List(connection.Apart(ctx), options)
			if err != nil && ctx.Err() == nil {
				s.set(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = s.source.Selector
			opened, err := resource.Watch(connection.Apart(ctx), options)
			if err == nil || ctx.Err() == nil {
				s.set(err)
			}
			return opened, err
		},
	}, client)
}

// set records whether the watch is open.
func (s *watch) set(err error) {
	if err != nil {
		err = errors.New(s.textOf(err))
	}
	s.mu.Lock()
	changed := (s.err == nil) != (err == nil) || err != nil && s.err.Error() != err.Error()
	s.err = err
	s.mu.Unlock()
	s.settle()
	if changed {
		s.notify()
	}
}

// settle ends the wait for the first objects if they are known, or why they are not.
func (s *watch) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.objects.HasSynced() || s.err != nil && !errors.Is(s.err, ErrStarting) {
		s.first.Do(func() { close(s.ready) })
	}
}

// textOf returns the text of an error for conditions, without what differs each time.
func (s *watch) textOf(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return err.Error()
	}
	if meta.IsNoMatchError(err) {
		return fmt.Sprintf("the management cluster has no kind %s in %s", s.source.Kind, s.source.APIVersion)
	}
	return fmt.Sprintf("the %ss cannot be watched, because the management cluster does not answer", s.source.Kind)
}

// reduce evaluates an object, and returns what the watch keeps of it.
func (s *watch) reduce(given any) (any, error) {
	found, is := given.(*unstructured.Unstructured)
	if !is {
		return given, nil // it was reduced before, or is the mark of a deletion
	}
	return &counted{
		TypeMeta: metav1.TypeMeta{APIVersion: found.GetAPIVersion(), Kind: found.GetKind()},
		ObjectMeta: metav1.ObjectMeta{
			Name: found.GetName(), Namespace: found.GetNamespace(), UID: found.GetUID(), ResourceVersion: found.GetResourceVersion(), Labels: found.GetLabels(),
		},
		result: s.source.evaluate(found.Object),
	}, nil
}

// updated notifies if an update changes a count.
func (s *watch) updated(before, after any) {
	one, is := before.(*counted)
	other, isToo := after.(*counted)
	if !is || !isToo || one.result != other.result || !labels.Equals(one.Labels, other.Labels) {
		s.notify()
	}
}

// count returns the count of a pool, or why it is not known. It waits for the first objects.
func (s *watch) count(ctx context.Context, pool Pool) (Count, error) {
	select {
	case <-s.ready:
	default:
		timer := time.NewTimer(time.Until(s.deadline))
		defer timer.Stop()
		select {
		case <-s.ready:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	objects, err := s.objects, s.err
	s.mu.Unlock()
	switch {
	case err != nil:
		return Count{}, err
	case !objects.HasSynced(): // the watch is open, so it was created
		return Count{}, ErrStarting
	}
	return countOf(pool, lo.FilterMap(objects.GetStore().List(), func(item any, _ int) (*counted, bool) {
		object, is := item.(*counted)
		return object, is
	}))
}

// countOf returns the count of a pool from the objects of its source. The error names an object that could not be evaluated.
func countOf(pool Pool, objects []*counted) (Count, error) {
	wanted, err := labels.ConvertSelectorToLabelsMap(pool.Labels)
	if err != nil {
		return Count{}, err
	}
	selector := labels.SelectorFromValidatedSet(wanted)
	var count Count
	if pool.Consumer != "" {
		count.Consumers = sets.New[string]()
	}
	failed := map[string]string{}
	for _, object := range objects {
		if !selector.Matches(labels.Set(object.Labels)) {
			continue
		}
		if object.failed != "" {
			failed[object.Name] = object.failed
			continue
		}
		count.Objects++
		count.Free += object.free
		count.Numbers = count.Numbers || object.number
		if object.consumer != "" {
			count.Consumers.Insert(object.consumer)
		}
	}
	if len(failed) > 0 {
		first := lo.Min(lo.Keys(failed))
		return Count{}, fmt.Errorf("%s %s: %s", pool.Kind, first, failed[first])
	}
	return count, nil
}
