// SPDX-License-Identifier: Apache-2.0

// Package precondition writes to an object only if what the decision depends on is still as it was
// read. The API server checks that in the same request, with the operations "test" of a JSON Patch
// (RFC 6902), and applies the patch as a whole or not at all. Unlike with the resourceVersion as
// precondition, a write of another controller to other fields causes no conflict. Cluster API writes
// a new Machine about nine times in its first seconds, and Karpenter a new NodeClaim about as often. Write
// and WriteStatus have the resourceVersion as precondition, for decisions that depend on the whole object.
package precondition

import (
	"encoding/json"
	"errors"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SameUID tests that it is the object that was read, and not another one of its name.
func SameUID(read client.Object) jsonpatch.Operation { return Equal("/metadata/uid", read.GetUID()) }

// NotDeleted tests that the object is not being deleted.
func NotDeleted() jsonpatch.Operation { return Absent("/metadata/deletionTimestamp") }

// Equal tests that a field has a value. The path is a JSON pointer (RFC 6901).
func Equal(path string, value any) jsonpatch.Operation {
	return jsonpatch.NewOperation("test", path, value)
}

// Absent tests that a field does not exist. Its parent must exist: a test below an absent field
// fails (gopkg.in/evanphx/json-patch.v4, which the API server uses: Patch.test).
//
// A test must have a value (RFC 6902, section 4.6), here null. With v4.12.0 of that module, which Kubernetes uses up to v1.34, a
// test without one panics. The type of operations leaves out a value that is nil.
func Absent(path string) jsonpatch.Operation {
	return jsonpatch.NewOperation("test", path, json.RawMessage("null"))
}

// SameEntry tests that a label or an annotation is as it was read, also if it was absent. path is
// that of all labels or annotations.
func SameEntry(path string, read map[string]string, key string) jsonpatch.Operation {
	if len(read) == 0 {
		return Absent(path)
	}
	path += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	if value, found := read[key]; found {
		return Equal(path, value)
	}
	return Absent(path)
}

// Patch returns a JSON Patch of tests and changes.
func Patch(operations ...jsonpatch.Operation) (client.Patch, error) {
	data, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	return client.RawPatch(types.JSONPatchType, data), nil
}

// Conflict returns the error of a JSON Patch like that of Write. It is a conflict if the API server could not
// apply the patch: a test has failed, or what the patch removes is absent. The error of the API server names no
// object then and has no cause, unlike that of a validation or a webhook (k8s.io/apiserver:
// pkg/endpoints/handlers/patch.go, applyJSPatch).
func Conflict(resource schema.GroupResource, object client.Object, doing string, err error) error {
	return describe(object, doing, conflict(resource, object.GetName(), err))
}

func conflict(resource schema.GroupResource, name string, err error) error {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return err
	}
	if details := status.Status().Details; details != nil && (details.Name != "" || len(details.Causes) > 0) {
		return err
	}
	return apierrors.NewConflict(resource, name, errors.New("what the decision depends on has changed since it was read"))
}
