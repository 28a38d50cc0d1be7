// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// live is a client of the server. It has only the methods that are used here.
type live struct {
	client.WithWatch
	*server
}

func (live) Scheme() *runtime.Scheme                       { return scheme.Scheme }
func (live) RESTMapper() meta.RESTMapper                   { return nil }
func (l live) Status() client.SubResourceWriter            { return statusOnly{server: l.server} }
func (l live) SubResource(string) client.SubResourceClient { return statusOnly{server: l.server} }

func (l live) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	return l.head.get(key, object)
}

func (l live) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	return l.head.list(list, nil, options...)
}

func (l live) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	if _, found := l.head[kindOf(object)][object.GetName()]; found {
		return apierrors.NewAlreadyExists(resourceOf(object), object.GetName())
	}
	if isDryRun(options) {
		return nil
	}
	created := object.DeepCopyObject().(client.Object)
	partOf(created, "Status").SetZero()
	assign(object, l.store(nil, created))
	return nil
}

// isDryRun reports whether an object is not to be stored.
func isDryRun(options []client.CreateOption) bool {
	given := client.CreateOptions{}
	return len(given.ApplyOptions(options).DryRun) > 0
}

func (l live) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	before, err := l.current(object, object.GetResourceVersion())
	if err != nil {
		return err
	}
	updated := object.DeepCopyObject().(client.Object)
	partOf(updated, "Status").Set(partOf(before, "Status"))
	keepIdentity(before, updated)
	assign(object, l.store(before, updated))
	return nil
}

func (l live) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return l.patch(object, patch, func(before, patched client.Object) client.Object {
		partOf(patched, "Status").Set(partOf(before, "Status"))
		return patched
	})
}

func (l live) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	given := client.DeleteOptions{Preconditions: nil}
	given.ApplyOptions(options)
	version, uid := "", types.UID("")
	if given.Preconditions != nil && given.Preconditions.ResourceVersion != nil {
		version = *given.Preconditions.ResourceVersion
	}
	before, err := l.current(object, version)
	if err != nil {
		return err
	}
	if given.Preconditions != nil && given.Preconditions.UID != nil {
		uid = *given.Preconditions.UID
	}
	if uid != "" && uid != before.GetUID() {
		return apierrors.NewConflict(resourceOf(object), object.GetName(), fmt.Errorf("its UID is %s", before.GetUID()))
	}
	if !before.GetDeletionTimestamp().IsZero() {
		return nil
	}
	deleted, now := before.DeepCopyObject().(client.Object), l.now()
	deleted.SetDeletionTimestamp(&now)
	l.store(before, deleted)
	return nil
}

// statusOnly is the status subresource.
type statusOnly struct {
	client.SubResourceClient
	*server
}

func (s statusOnly) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.patch(object, patch, func(before, patched client.Object) client.Object {
		after := before.DeepCopyObject().(client.Object)
		partOf(after, "Status").Set(partOf(patched, "Status"))
		return after
	})
}

// current returns the stored object, and a conflict if another version is expected.
func (s *server) current(object client.Object, version string) (client.Object, error) {
	current, found := s.head[kindOf(object)][object.GetName()]
	if !found {
		return nil, apierrors.NewNotFound(resourceOf(object), object.GetName())
	}
	if version != "" && version != current.GetResourceVersion() {
		return nil, apierrors.NewConflict(resourceOf(object), object.GetName(), errors.New("the object has been modified"))
	}
	return current, nil
}

// patch applies a patch; part selects the part of the result that can be changed.
func (s *server) patch(object client.Object, patch client.Patch, part func(before, patched client.Object) client.Object) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	if patch.Type() == types.JSONPatchType {
		return s.patchJSON(object, data, part)
	}
	changes := map[string]any{}
	if err := json.Unmarshal(data, &changes); err != nil {
		return err
	}
	version := ""
	if metadata, ok := changes["metadata"].(map[string]any); ok {
		version, _ = metadata["resourceVersion"].(string)
	}
	before, err := s.current(object, version)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		assign(object, before) // core writes metadata and status in sequence, one of them without effect
		return nil
	}
	content, err := contentOf(before)
	if err != nil {
		return err
	}
	if patch.Type() == types.StrategicMergePatchType {
		content, err = strategicpatch.StrategicMergeMapPatch(content, changes, before)
	} else {
		content = merge(content, changes)
	}
	if err != nil {
		return err
	}
	patched := reflect.New(reflect.TypeOf(before).Elem()).Interface().(client.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, patched); err != nil {
		return err
	}
	keepIdentity(before, patched)
	assign(object, s.store(before, part(before, patched)))
	return nil
}

// contentOf returns a copy of what an object has.
func contentOf(object client.Object) (map[string]any, error) {
	if object, isUnstructured := object.(*unstructured.Unstructured); isUnstructured {
		return object.DeepCopy().Object, nil // the converter would return the stored content itself
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}

// patchJSON applies a JSON Patch (RFC 6902) as the API server does, with the same library.
func (s *server) patchJSON(object client.Object, data []byte, part func(before, patched client.Object) client.Object) error {
	before, err := s.current(object, "")
	if err != nil {
		return err
	}
	changes, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return err
	}
	content, err := json.Marshal(before)
	if err != nil {
		return err
	}
	if content, err = changes.Apply(content); err != nil {
		return fixture.TestFailed(err)
	}
	patched := reflect.New(reflect.TypeOf(before).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(content, patched); err != nil {
		return err
	}
	keepIdentity(before, patched)
	assign(object, s.store(before, part(before, patched)))
	return nil
}

// merge is a JSON merge patch (RFC 7386).
func merge(target, patch map[string]any) map[string]any {
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			inner, _ := target[key].(map[string]any)
			if inner == nil {
				inner = map[string]any{}
			}
			target[key] = merge(inner, value)
		default:
			target[key] = value
		}
	}
	return target
}

// keepIdentity restores what no write changes.
func keepIdentity(before, after client.Object) {
	after.SetUID(before.GetUID())
	after.SetGeneration(before.GetGeneration())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	after.SetDeletionTimestamp(before.GetDeletionTimestamp())
}

// assign copies a stored object into the caller's object.
func assign(into, stored client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
}

func resourceOf(object client.Object) schema.GroupResource {
	return schema.GroupResource{Resource: kindOf(object)}
}
