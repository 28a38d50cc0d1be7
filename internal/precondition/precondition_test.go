// SPDX-License-Identifier: Apache-2.0

package precondition_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
)

// Each test has a value: the API server of Kubernetes v1.34 panics if one has none.
func TestPatch(t *testing.T) {
	read := &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "uid", Labels: map[string]string{"a/b": "", "c": "d"}}}
	patch, err := precondition.Patch(
		precondition.SameUID(read), precondition.NotDeleted(), precondition.Equal("/spec/unschedulable", false),
		precondition.SameEntry("/metadata/labels", read.Labels, "a/b"), precondition.SameEntry("/metadata/labels", read.Labels, "x"),
		precondition.SameEntry("/metadata/annotations", read.Annotations, "x"),
	)
	if err != nil {
		t.Fatal(err)
	}
	data, err := patch.Data(read)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": "uid"},
		{"op": "test", "path": "/metadata/deletionTimestamp", "value": nil},
		{"op": "test", "path": "/spec/unschedulable", "value": false},
		{"op": "test", "path": "/metadata/labels/a~1b", "value": ""},
		{"op": "test", "path": "/metadata/labels/x", "value": nil},
		{"op": "test", "path": "/metadata/annotations", "value": nil},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}
