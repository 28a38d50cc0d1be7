// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// A test is a precondition of a write: something that a decision depends on must still be as it was
// read. It is an operation "test" of a JSON Patch (RFC 6902), which the API server checks in the
// same request. So a write of a controller that changes something else causes no conflict. Cluster
// API writes a new Machine about nine times in its first seconds.
//
// A test without a value passes if the field is absent (gopkg.in/evanphx/json-patch.v4, which the
// API server uses, and its successor v5: Patch.test).
type test func(read *clusterv1.Machine) jsonpatch.Operation

// sameLink tests that the Machine is linked as it was, and was not linked and unlinked in between.
func sameLink() []test {
	return []test{sameLabel(v1alpha1.NodeClaimUIDLabel), sameAnnotation(v1alpha1.SpareSinceAnnotation)}
}

// sameMark tests that the Machine is marked for deletion or not, as it was.
func sameMark() test { return sameAnnotation(v1alpha1.MarkedForDeletionAtAnnotation) }

// sameDeletion tests that a Machine that was not being deleted is still not. A deletion cannot be
// undone, so nothing else can have changed.
func sameDeletion(read *clusterv1.Machine) jsonpatch.Operation {
	if !read.DeletionTimestamp.IsZero() {
		return sameUID(read)
	}
	return absent("/metadata/deletionTimestamp")
}

// noNode tests that the Machine has no Node.
func noNode(read *clusterv1.Machine) jsonpatch.Operation {
	if reflect.ValueOf(read.Status).IsZero() {
		return absent("/status") // a test below an absent field fails
	}
	return absent("/status/nodeRef")
}

// sameUID tests that it is the Machine that was read, and not another one of its name.
func sameUID(read *clusterv1.Machine) jsonpatch.Operation {
	return jsonpatch.NewOperation("test", "/metadata/uid", read.UID)
}

func sameLabel(key string) test {
	return func(read *clusterv1.Machine) jsonpatch.Operation {
		return sameEntry("/metadata/labels", read.Labels, key)
	}
}

func sameAnnotation(key string) test {
	return func(read *clusterv1.Machine) jsonpatch.Operation {
		return sameEntry("/metadata/annotations", read.Annotations, key)
	}
}

func sameEntry(path string, entries map[string]string, key string) jsonpatch.Operation {
	value, found := entries[key]
	switch path := path + "/" + escape(key); {
	case found:
		return jsonpatch.NewOperation("test", path, value)
	case len(entries) == 0:
		return absent(path[:strings.LastIndex(path, "/")])
	default:
		return absent(path)
	}
}

func absent(path string) jsonpatch.Operation { return jsonpatch.NewOperation("test", path, nil) }

// escape returns a key as a part of a JSON pointer (RFC 6901).
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// patch writes the labels and annotations of a Machine, in which changed differs from read. If a
// test fails, nothing is written and a conflict is returned. Otherwise
// changed has what the API server has.
func patch(ctx context.Context, management client.Client, read, changed *clusterv1.Machine, tests ...test) error {
	operations := []jsonpatch.Operation{sameUID(read)}
	for _, test := range tests {
		operations = append(operations, test(read))
	}
	before, err := json.Marshal(metadata(read))
	if err != nil {
		return err
	}
	after, err := json.Marshal(metadata(changed))
	if err != nil {
		return err
	}
	changes, err := jsonpatch.CreatePatch(before, after)
	if err != nil {
		return err
	}
	data, err := json.Marshal(append(operations, changes...))
	if err != nil {
		return err
	}
	err = management.Patch(ctx, changed, client.RawPatch(types.JSONPatchType, data))
	if hasChanged(err) {
		machines := schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "machines"}
		return apierrors.NewConflict(machines, read.Name, errors.New("it has been linked, unlinked, marked, deleted or created again since it was read"))
	}
	return err
}

// metadata returns the part of a Machine that patch writes.
func metadata(machine *clusterv1.Machine) map[string]any {
	parts := map[string]map[string]string{}
	if len(machine.Labels) > 0 {
		parts["labels"] = machine.Labels
	}
	if len(machine.Annotations) > 0 {
		parts["annotations"] = machine.Annotations
	}
	return map[string]any{"metadata": parts}
}

// hasChanged reports whether the API server could not apply a JSON Patch to the object: a test has
// failed, or what it removes is absent. That error names no object and has no cause, unlike that of
// a validation or a webhook (k8s.io/apiserver: pkg/endpoints/handlers/patch.go, applyJSPatch).
func hasChanged(err error) bool {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" && len(details.Causes) == 0
}
