// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
)

// The tests below are what a write to a Machine depends on, see package precondition.

// sameState tests that the Machine is linked, marked for deletion and being deleted as it was, or
// not. A Machine that was linked and unlinked in between has another annotation spare-since.
func sameState(read *clusterv1.Machine) []jsonpatch.Operation {
	return append(sameDeletion(read), precondition.SameEntry("/metadata/labels", read.Labels, v1alpha1.NodeClaimUIDLabel),
		sameAnnotation(read, v1alpha1.SpareSinceAnnotation), sameMark(read))
}

func sameMark(read *clusterv1.Machine) jsonpatch.Operation {
	return sameAnnotation(read, v1alpha1.MarkedForDeletionAtAnnotation)
}

// sameDeletion tests that a Machine that was not being deleted is still not. A deletion cannot be
// undone, so of a Machine that was being deleted there is nothing to test.
func sameDeletion(read *clusterv1.Machine) []jsonpatch.Operation {
	if !read.DeletionTimestamp.IsZero() {
		return nil
	}
	return []jsonpatch.Operation{precondition.NotDeleted()}
}

// noNode tests that the Machine has no Node.
func noNode(read *clusterv1.Machine) jsonpatch.Operation {
	if reflect.ValueOf(read.Status).IsZero() {
		return precondition.Absent("/status")
	}
	return precondition.Absent("/status/nodeRef")
}

func sameAnnotation(read *clusterv1.Machine, key string) jsonpatch.Operation {
	return precondition.SameEntry("/metadata/annotations", read.Annotations, key)
}

// patch writes the labels and annotations in which changed differs from the Machine that was read,
// if that is still the same Machine and passes the tests. Then changed has what the API server has.
// Otherwise nothing is written, and a conflict is returned.
func patch(ctx context.Context, management client.Client, read, changed *clusterv1.Machine, doing string, tests ...jsonpatch.Operation) error {
	changes, err := difference(read, changed)
	if err != nil {
		return err
	}
	data, err := precondition.Patch(slices.Concat([]jsonpatch.Operation{precondition.SameUID(read)}, tests, changes)...)
	if err != nil {
		return err
	}
	machines := schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "machines"}
	return precondition.Conflict(machines, read, doing, management.Patch(ctx, changed, data))
}

// difference returns the changes of labels and annotations.
func difference(read, changed *clusterv1.Machine) ([]jsonpatch.Operation, error) {
	before, err := json.Marshal(metadataOf(read))
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(metadataOf(changed))
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreatePatch(before, after)
}

// metadataOf returns the part of a Machine that patch writes, as the API server has it.
func metadataOf(machine *clusterv1.Machine) any {
	type metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	return struct {
		Metadata metadata `json:"metadata"`
	}{metadata{machine.Labels, machine.Annotations}}
}
