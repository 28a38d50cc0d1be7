// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// change is one write that the API server has accepted.
type change struct {
	at            time.Time
	actor         string
	kind, name    string
	before, after client.Object // nil: it did not exist before, or does not exist after
}

// server is the API server of both clusters. It remembers every version of every object, from which
// the caches of our process are filled. Stored objects are never modified.
//
// It is not controller-runtime's fake client, which has no UIDs, generations and clock, reuses
// resourceVersions, does not check the UID of a precondition, sends an event for a write that
// changes nothing, and takes four times as long for a patch, which would be most of the time of the
// search.
type server struct {
	clock *clocktesting.FakeClock

	head    view                 // what there is now
	log     map[string][]*change // everything that happened, by kind
	version int                  // resourceVersion of the last write
	objects int                  // objects created
	actor   string               // the current actor
	check   func(*change)        // called after each change
}

func newServer(clock *clocktesting.FakeClock) *server {
	return &server{clock: clock, head: view{}, log: map[string][]*change{}, check: func(*change) {}}
}

// clone returns a server with the same history.
func (s *server) clone(clock *clocktesting.FakeClock) *server {
	c := newServer(clock)
	c.version, c.objects = s.version, s.objects
	for kind, log := range s.log {
		c.log[kind], c.head[kind] = slices.Clone(log), maps.Clone(s.head[kind])
	}
	return c
}

// put stores an object unchanged, with its status: a write of a peer, which knows the current
// state. It creates the object if it does not exist.
func (s *server) put(object client.Object) {
	s.store(s.head[kindOf(object)][object.GetName()], object.DeepCopyObject().(client.Object))
}

// store stores an object instead of another, nil for none, and returns what is stored. An object
// that is being deleted is removed with its last finalizer.
func (s *server) store(before, after client.Object) client.Object {
	if before != nil && same(before, after) {
		return before
	}
	s.version++
	if _, isUnstructured := after.(*unstructured.Unstructured); !isUnstructured {
		after.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	after.SetResourceVersion(strconv.Itoa(s.version))
	switch {
	case before == nil:
		s.objects++
		after.SetUID(types.UID(fmt.Sprintf("uid-%03d", s.objects)))
		after.SetGeneration(1)
		after.SetCreationTimestamp(s.now())
		after.SetDeletionTimestamp(nil)
	case !equality.Semantic.DeepEqual(specOf(before), specOf(after)) || before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero():
		after.SetGeneration(before.GetGeneration() + 1)
	}
	if !after.GetDeletionTimestamp().IsZero() && len(after.GetFinalizers()) == 0 {
		s.record(before, nil)
	} else {
		s.record(before, after)
	}
	return after
}

// record records a change.
func (s *server) record(before, after client.Object) {
	object := after
	if after == nil {
		object = before
	}
	kind, name := kindOf(object), object.GetName()
	if s.head[kind] == nil {
		s.head[kind] = map[string]client.Object{}
	}
	if after == nil {
		delete(s.head[kind], name)
	} else {
		s.head[kind][name] = after
	}
	c := &change{at: s.clock.Now(), actor: s.actor, kind: kind, name: name, before: before, after: after}
	s.log[kind] = append(s.log[kind], c)
	s.check(c)
}

// now returns the time in whole seconds, as API servers store it.
func (s *server) now() metav1.Time { return metav1.NewTime(s.clock.Now().Truncate(time.Second)) }

// same reports whether a write changes nothing. Such a write causes no event.
func same(before, after client.Object) bool {
	return equality.Semantic.DeepEqual(specOf(before), specOf(after)) &&
		equality.Semantic.DeepEqual(statusOf(before), statusOf(after)) &&
		equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) &&
		equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) &&
		equality.Semantic.DeepEqual(before.GetFinalizers(), after.GetFinalizers()) &&
		equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) &&
		before.GetDeletionTimestamp().IsZero() == after.GetDeletionTimestamp().IsZero()
}

func specOf(object client.Object) any   { return partOf(object, "Spec").Interface() }
func statusOf(object client.Object) any { return partOf(object, "Status").Interface() }

// partOf returns spec or status. For an object without such a field it returns a copy, or nothing,
// so that writes to it have no effect.
func partOf(object client.Object, name string) reflect.Value {
	if part := reflect.ValueOf(object).Elem().FieldByName(name); part.IsValid() {
		return part
	}
	var part any
	if object, isUnstructured := object.(*unstructured.Unstructured); isUnstructured {
		part = object.Object[strings.ToLower(name)]
	}
	return reflect.ValueOf(&part).Elem()
}

func kindOf(object any) string {
	if object, isUnstructured := object.(*unstructured.Unstructured); isUnstructured {
		return object.GetKind()
	}
	if list, isUnstructured := object.(*unstructured.UnstructuredList); isUnstructured {
		return list.GetKind()
	}
	return reflect.TypeOf(object).Elem().Name()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
