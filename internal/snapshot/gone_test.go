// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// If a provider has only given up on a Machine, the Node decides: its instance counts as gone after 5 minutes of silence, or
// when the Node no longer exists. A Node that cannot be read decides nothing.
func TestInstanceGone(t *testing.T) {
	unreadable := errors.New("the cache is not filled")
	silentFor := func(d time.Duration) *corev1.Node {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(fixture.Noon.Add(-d))}}
		return node
	}
	for name, tc := range map[string]struct {
		node   *corev1.Node // nil if none exists
		exists bool         // the instance, as far as the provider reports
		reason string       // of its infrastructure; NotReady if empty
		fails  error
		gone   bool
		left   time.Duration
	}{
		"nothing is reported":     {exists: true, node: silentFor(time.Hour)},
		"the provider reports it": {reason: clusterv1.MachineInfrastructureDeletedReason, node: silentFor(time.Minute), gone: true},
		"no Node exists":          {gone: true},
		"the Node cannot be read": {fails: unreadable},
		"silent for a minute":     {node: silentFor(time.Minute), left: 4 * time.Minute},
		"silent for 5 minutes":    {node: silentFor(5 * time.Minute), gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.WithCondition(fixture.Machine(time.Hour), clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown, clusterv1.MachineNodeReadyUnknownReason, "", fixture.Noon)
			machine.Status.NodeRef.Name = "n"
			if !tc.exists {
				fixture.WithCondition(machine, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, cmp.Or(tc.reason, "NotReady"), "", fixture.Noon)
				machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{FailureMessage: new("deleted")}} //nolint:staticcheck // Providers set it.
			}
			var objects []client.Object
			if tc.node != nil {
				objects = append(objects, tc.node)
			}
			clusters := fixture.Clusters(objects...)
			clusters.Workload = fixture.Cluster{Client: interceptor.NewClient(clusters.Workload.GetClient().(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if tc.fails != nil {
						return tc.fails
					}
					return c.Get(ctx, key, object, options...)
				},
			})}
			why, left, err := InstanceGone(t.Context(), clusters, machine, fixture.Noon)
			if (why != "") != tc.gone || left != tc.left || !errors.Is(err, tc.fails) {
				t.Errorf("got %q, %s and %v, want it deleted: %t, %s and %v", why, left, err, tc.gone, tc.left, tc.fails)
			}
		})
	}
}
