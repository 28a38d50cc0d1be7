// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// What has changed since it was read is not written. The conflict is returned, so that the operator tries again.
func TestConflictsAreReturned(t *testing.T) {
	type state struct {
		r        *Reconciler
		snap     *decided
		claim    *karpv1.NodeClaim
		resource *clusterv1.MachineDeployment
		machine  *clusterv1.Machine
	}
	deleted := func(s *state, marked bool) {
		s.machine.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
		s.machine.Annotations = map[string]string{v1alpha1.TerminateHookAnnotation: ""}
		if marked {
			s.machine.Annotations[v1alpha1.MarkedForDeletionAtAnnotation] = timestamp.Format(fixture.Noon)
		}
	}
	for name, do := range map[string]func(context.Context, *state) error{
		"a claim gets another resource": func(ctx context.Context, s *state) error {
			s.snap.Name, s.snap.Resource = "old", nil
			_, err := s.r.ensureResource(ctx, s.snap)
			return err
		},
		"a claim moves from a resource that ends": func(ctx context.Context, s *state) error {
			s.snap.Ending = true
			return s.r.moveWaiting(ctx, s.snap)
		},
		"a claim is rejected": func(ctx context.Context, s *state) error {
			return s.r.rejectAll(ctx, s.snap, context.DeadlineExceeded)
		},
		"a claim gets its annotations back": func(ctx context.Context, s *state) error {
			return s.r.restoreAnnotations(ctx, s.snap, s.machine, s.claim)
		},
		"a resource is adopted": func(ctx context.Context, s *state) error {
			_, err := s.r.adoptAs(ctx, s.resource, "general", catalog.KeyOf(s.claim))
			return err
		},
		"an adoption ends": func(ctx context.Context, s *state) error {
			s.snap.Claims, s.snap.Machines, s.snap.Template = nil, nil, nil
			_, err := s.r.endAdoption(ctx, s.snap)
			return err
		},
		"a resource is changed in place": func(ctx context.Context, s *state) error {
			s.snap.Template.Spec.ScalableResource.Annotations = map[string]string{"mine": "x"}
			_, err := s.r.setInPlace(ctx, s.snap)
			return err
		},
		"a Machine that a user deletes is marked": func(ctx context.Context, s *state) error {
			deleted(s, false)
			_, err := s.r.deleteMarked(ctx, s.snap)
			return err
		},
		"a Machine loses its hooks": func(ctx context.Context, s *state) error {
			deleted(s, true)
			s.snap.Resource, s.snap.Plan.Deletable = nil, []string{"m"}
			_, err := s.r.deleteMarked(ctx, s.snap)
			return err
		},
		"a Machine of a suspended resource is marked": func(ctx context.Context, s *state) error {
			deleted(s, false)
			return s.r.deleteSuspended(ctx, s.snap)
		},
		"a Machine of a suspended resource loses its hooks": func(ctx context.Context, s *state) error {
			deleted(s, true)
			return s.r.deleteSuspended(ctx, s.snap)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			resource, claim, machine := withReplicas(1), launchedClaim("small"), fixture.OfMachineDeployment(fixture.Machine(time.Minute))
			resource.Labels[v1alpha1.InstanceTypeLabel], resource.Labels[v1alpha1.CapacityTypeLabel] = "small", karpv1.CapacityTypeOnDemand
			machine.Namespace = fixture.Served.Namespace
			clusters := clustersWith(fixture.Served, cluster, &[]string{}, cluster, resource, claim, machine)
			c := clusters.Management.GetClient()
			for _, object := range []client.Object{resource, claim, machine} {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
				changed := object.DeepCopyObject().(client.Object)
				changed.SetFinalizers([]string{"theirs/x"})
				if err := c.Update(t.Context(), changed); err != nil {
					t.Fatal(err)
				}
			}
			clusters.Management = fixture.Cluster{Client: fixture.WithJSONPatch(c.(client.WithWatch)), Live: clusters.Management.GetAPIReader()}
			machine.UID = "another" // it was deleted, and another one has its name
			s := &state{r: newReconciler(clusters, catalog.New(clusters), &published{}, clocktesting.NewFakeClock(fixture.Noon)), claim: claim, resource: resource, machine: machine}
			s.snap = &decided{Snapshot: &snapshot.Snapshot{Name: "general", Resource: scalable.New(resource), Template: template(), Claims: []karpv1.NodeClaim{*claim}, Machines: map[string]*clusterv1.Machine{"m": machine}, State: planner.State{Now: fixture.Noon}}, Plan: planner.Plan{Waiting: sets.New(claim.UID)}}
			if err := do(t.Context(), s); !apierrors.IsConflict(err) {
				t.Errorf("got %v, want a conflict", err)
			}
		})
	}
}
