// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// The operator tries again after createAgainAfter to raise replicas. Only a rejection is written on
// the claims, whose launch can fail because of it.
func TestReplicasThatCannotBeRaised(t *testing.T) {
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	resource := schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "machinedeployments"}
	for name, tc := range map[string]struct {
		err     error
		again   time.Duration
		refused bool
	}{
		"the webhook does not answer":   {err: apierrors.NewInternalError(errors.New("failed calling webhook: connection refused")), again: createAgainAfter},
		"a policy rejects them":         {err: apierrors.NewForbidden(resource, "x", errors.New("too many")), again: createAgainAfter, refused: true},
		"another writer has changed it": {err: apierrors.NewConflict(resource, "x", errors.New("changed")), again: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: "general", Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}}
			deployment.Spec.Replicas = new(int32(0))
			claim := launchedClaim("small")
			claim.Annotations[v1alpha1.ScalableResourceAnnotation] = deployment.Name
			running, machine := launchedClaim("small"), fixture.OfMachineDeployment(fixture.Machine(time.Minute))
			running.Name, running.UID, running.Annotations = "d", "d", claim.Annotations
			machine.Namespace, machine.Labels[v1alpha1.NodeClaimUIDLabel] = served.Namespace, "d"
			machine.Labels[clusterv1.MachineDeploymentNameLabel] = deployment.Name
			clusters := clustersWith(served, cluster, &[]string{}, cluster, claim, running, machine, deployment)
			inner := clusters.Management.GetClient().(client.WithWatch)
			failing := fixture.Cluster{Client: interceptor.NewClient(inner, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if _, is := object.(*clusterv1.MachineDeployment); is {
						return tc.err
					}
					return c.Patch(ctx, object, patch, opts...)
				},
			}), Live: clusters.Management.GetAPIReader()}
			clusters = &clients.Clusters{Cluster: served, Workload: failing, Management: failing}
			r := newReconciler(clusters, catalog.New(clusters), silent{}, clocktesting.NewFakeClock(time.Now()))
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: deployment.Name}})
			if err != nil {
				t.Fatal(err)
			}
			if result.RequeueAfter != tc.again {
				t.Errorf("the next attempt is after %s, want %s", result.RequeueAfter, tc.again)
			}
			for _, c := range []*karpv1.NodeClaim{claim, running} {
				if err := inner.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
					t.Fatal(err)
				}
			}
			if got := nodeclaims.IsRejected(claim); got != tc.refused {
				t.Errorf("rejected: %t, want %t", got, tc.refused)
			}
			if nodeclaims.IsRejected(running) {
				t.Error("the claim that has its Machine is rejected")
			}
		})
	}
}
