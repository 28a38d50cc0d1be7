// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestStripNodes(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}}, Status: corev1.NodeStatus{
		Phase: corev1.NodeRunning, VolumesInUse: []corev1.UniqueVolumeName{"volume"},
	}}
	want := node.DeepCopy()
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"image"}}}
	got, err := StripNodes()(node)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "a"}
	if got, err := StripNodes()(tombstone); err != nil || got != tombstone {
		t.Errorf("got %v, error %v, want the tombstone", got, err)
	}
}
