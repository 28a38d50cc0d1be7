// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
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
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// published are the events.
type published []events.Event

func (p *published) Publish(all ...events.Event) { *p = append(*p, all...) }

func (p *published) reasons() []string {
	return lo.Map(*p, func(event events.Event, _ int) string { return event.Reason })
}

// The API server can reject what it accepted as a dry run, because of a quota, or of a webhook or a
// policy that accepts dry runs. The operator writes the reason on the claims, and tries again until
// the API server accepts it. It writes other errors on no claim.
func TestAResourceThatCannotBeCreated(t *testing.T) {
	resource := schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "machinedeployments"}
	for name, tc := range map[string]struct {
		kind    string
		err     error
		refused string
	}{
		"a quota":                      {kind: "MachineDeployment", err: apierrors.NewForbidden(resource, "x", errors.New("exceeded quota: team")), refused: "exceeded quota: team"},
		"a policy":                     {kind: "MachineDeployment", err: apierrors.NewInvalid(schema.GroupKind{Kind: "MachineDeployment"}, "x", nil), refused: "is invalid"},
		"a webhook that denies it":     {kind: "MachineDeployment", err: apierrors.NewBadRequest("denied the request"), refused: "denied the request"},
		"a webhook for its templates":  {kind: "AWSMachineTemplate", err: apierrors.NewForbidden(resource, "x", errors.New("denied the request")), refused: "denied the request"},
		"a webhook that does not run":  {kind: "MachineDeployment", err: apierrors.NewInternalError(errors.New("failed calling webhook"))},
		"too many requests":            {kind: "MachineDeployment", err: apierrors.NewTooManyRequests("later", 1)},
		"an answer that does not come": {kind: "AWSMachineTemplate", err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			served := types.NamespacedName{Namespace: "fleet", Name: "served"}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
			first, second := launchedClaim("small"), launchedClaim("small")
			second.Name, second.UID = "d", "d"
			for _, claim := range []*karpv1.NodeClaim{first, second} {
				claim.Annotations[v1alpha1.ScalableResourceAnnotation] = generatedName(t, served, cluster)
			}
			clusters := clustersWith(served, cluster, &[]string{}, cluster, first, second)
			inner := clusters.Management.GetClient().(client.WithWatch)
			fails, unwritten := true, false
			failing := fixture.Cluster{Client: interceptor.NewClient(inner, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
					if gvk, err := c.GroupVersionKindFor(object); err != nil || fails && gvk.Kind == tc.kind {
						return errors.Join(err, tc.err)
					}
					return c.Create(ctx, object, opts...)
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					if unwritten {
						return errors.New("no answer")
					}
					return c.SubResource(sub).Patch(ctx, object, patch, opts...)
				},
			}), Live: inner}
			clusters = &clients.Clusters{Cluster: served, Workload: failing, Management: failing}
			told := &published{}
			r := newReconciler(clusters, catalog.New(clusters), told, clocktesting.NewFakeClock(time.Now()))
			reconcileOnce := func() time.Duration {
				t.Helper()
				result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: first.Annotations[v1alpha1.ScalableResourceAnnotation]}})
				if err != nil {
					t.Fatal(err)
				}
				return result.RequeueAfter
			}

			unwritten = tc.refused != ""
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: first.Annotations[v1alpha1.ScalableResourceAnnotation]}}); (err != nil) != unwritten {
				t.Errorf("the reason cannot be written: got %v", err)
			}
			unwritten, *told = false, nil
			if again := reconcileOnce(); again == 0 || again > createAgainAfter {
				t.Errorf("the next attempt is after %s, want at most %s", again, createAgainAfter)
			}
			for _, claim := range []*karpv1.NodeClaim{first, second} {
				after := &karpv1.NodeClaim{}
				if err := inner.Get(t.Context(), client.ObjectKeyFromObject(claim), after); err != nil {
					t.Fatal(err)
				}
				message := lo.FromPtr(after.StatusConditions().Get(v1alpha1.ConditionMachineAvailable)).Message
				if nodeclaims.IsRejected(after) != (tc.refused != "") || !strings.Contains(message, tc.refused) {
					t.Errorf("NodeClaim %s is rejected: %t with %q, want %q", claim.Name, nodeclaims.IsRejected(after), message, tc.refused)
				}
				if !after.DeletionTimestamp.IsZero() {
					t.Errorf("NodeClaim %s is being deleted", claim.Name)
				}
			}
			if len(*told) == 0 || (*told)[0].Reason != "MachineDeploymentNotCreated" || !strings.Contains((*told)[0].Message, tc.err.Error()) {
				t.Errorf("got events %+v, want one with the error", *told)
			}

			fails = false
			reconcileOnce()
			created := &clusterv1.MachineDeploymentList{}
			if err := inner.List(t.Context(), created); err != nil {
				t.Fatal(err)
			}
			if len(created.Items) != 1 || lo.FromPtr(created.Items[0].Spec.Replicas) != 2 {
				t.Errorf("got MachineDeployments %+v, want one with 2 replicas", created.Items)
			}
		})
	}
}
