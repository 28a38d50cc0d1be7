// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// An API server that does not answer is no evidence that something does not exist: a Machine could be deleted for it.
func TestNothingIsConcludedWithoutAnAnswer(t *testing.T) {
	machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
	machine.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "a", UID: "u", Controller: new(true)}}
	for name, ask := range map[string]func(context.Context, *clients.Clusters) error{
		"the resource of a name": func(ctx context.Context, clusters *clients.Clusters) error {
			_, err := Get(ctx, clusters, "general")
			return err
		},
		"whether replicas are current": func(ctx context.Context, clusters *clients.Clusters) error {
			_, err := New(fixture.MachinePool(nil)).IsCurrent(ctx, clusters)
			return err
		},
		"whether a MachineSet is current": func(ctx context.Context, clusters *clients.Clusters) error {
			_, err := IsSetCurrent(ctx, clusters, client.ObjectKey{Namespace: "clusters", Name: "a"})
			return err
		},
		"the owner of a Machine": func(ctx context.Context, clusters *clients.Clusters) error {
			_, err := NewOwners(clusters).Foreign(ctx, machine)
			return err
		},
		"a new object": func(ctx context.Context, clusters *clients.Clusters) error {
			_, err := Create(ctx, clusters, fixture.MachineSet("new", "general", 1))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := fixture.Clusters(fixture.MachineSet("a", "general", 1))
			out := apierrors.NewInternalError(context.DeadlineExceeded)
			clusters.Management = fixture.Cluster{Client: interceptor.NewClient(clusters.Management.GetClient().(client.WithWatch), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return out
				},
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return out },
			})}
			if err := ask(t.Context(), clusters); !apierrors.IsInternalError(err) {
				t.Errorf("got %v, want the error", err)
			}
		})
	}
}

// An error of a write is returned as it is, also if an object of that name exists: whether it is a rejection
// depends on it.
func TestRejectedObjectIsNoExistingOne(t *testing.T) {
	clusters := fixture.Clusters(fixture.MachineSet("a", "general", 1))
	clusters.Management = fixture.Cluster{Client: interceptor.NewClient(clusters.Management.GetClient().(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewBadRequest("denied")
		},
	})}
	if created, err := Create(t.Context(), clusters, fixture.MachineSet("a", "general", 1)); created || !apierrors.IsBadRequest(err) {
		t.Errorf("created: %t (%v), want the rejection", created, err)
	}
}
