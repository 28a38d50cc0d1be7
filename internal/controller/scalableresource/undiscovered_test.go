// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// While the MachineDeployment that a template follows cannot be used, waiting claims keep their resource, whether that exists
// or not, and nothing is written.
func TestWhatFollowsNothingNowStays(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
	claim, writes := launchedClaim("small"), []string{}
	claim.Annotations[v1alpha1.ScalableResourceAnnotation] = "general"
	clusters := clustersWith(fixture.Served, cluster, &writes, cluster, claim)
	workload, follower := clusters.Workload.GetClient(), &v1alpha1.KarpenterMachineTemplate{}
	if err := workload.Get(t.Context(), client.ObjectKey{Name: "general"}, follower); err != nil {
		t.Fatal(err)
	}
	follower.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "gone"}
	follower.Status.From = &v1alpha1.ObservedMachineTemplate{MachineDeployment: "gone", Hash: "1"}
	if err := workload.Update(t.Context(), follower); err != nil {
		t.Fatal(err)
	}
	template, err := clusters.Template(t.Context(), "general")
	if err != nil {
		t.Fatal(err)
	}
	r := newReconciler(clusters, catalog.New(clusters), &published{}, clocktesting.NewFakeClock(fixture.Noon))
	snap := decide(&snapshot.Snapshot{Name: "general", Template: template, Claims: []karpv1.NodeClaim{*claim}, State: planner.State{Now: fixture.Noon}})
	if again, err := r.ensureResource(t.Context(), snap); err != nil || again != 0 {
		t.Errorf("a resource that does not exist: got %s and %v", again, err)
	}
	snap.Ending, snap.Resource = true, scalable.New(withReplicas(1))
	snap.Resource.SetLabels(map[string]string{v1alpha1.TemplateLabel: "general", v1alpha1.InstanceTypeLabel: "small", v1alpha1.CapacityTypeLabel: karpv1.CapacityTypeOnDemand})
	if err := r.moveWaiting(t.Context(), snap); err != nil {
		t.Errorf("a resource that ends: got %v", err)
	}
	if changed, err := r.setInPlace(t.Context(), snap); err != nil || changed {
		t.Errorf("a resource that is changed in place: got %t and %v", changed, err)
	}
	stored := &karpv1.NodeClaim{}
	if err := workload.Get(t.Context(), client.ObjectKeyFromObject(claim), stored); err != nil || nodeclaims.IsRejected(stored) || len(writes) > 0 {
		t.Errorf("got %v and writes %v, want that the claim stays as it is", err, writes)
	}
}

// While MachineDeployments cannot be listed, it is unknown whether a template still offers one. No adoption ends, and waiting
// claims keep their resource, without an error: the template's conditions report it.
func TestWhatCannotBeDiscoveredStays(t *testing.T) {
	deployment := existing()
	deployment.Labels = offered()
	deployment.Annotations[v1alpha1.AdoptedAnnotation], deployment.Annotations[v1alpha1.UnmanagedReplicasAnnotation] = timestamp.Format(fixture.Noon), "0"
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
	reconciler := func() (*Reconciler, *clients.Clusters) {
		clusters := clustersWith(fixture.Served, cluster, &[]string{}, cluster, deployment.DeepCopy())
		clusters.Management = fixture.Cluster{Client: interceptor.NewClient(clusters.Management.GetClient().(client.WithWatch), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, is := list.(*clusterv1.MachineDeploymentList); is {
					return errors.New("not now")
				}
				return c.List(ctx, list, opts...)
			},
		})}
		return newReconciler(clusters, catalog.New(clusters), &published{}, clocktesting.NewFakeClock(fixture.Noon)), clusters
	}

	r, clusters := reconciler()
	adopted := &decided{Snapshot: &snapshot.Snapshot{Name: "existing", Resource: scalable.New(deployment.DeepCopy()), Template: template(), State: planner.State{Now: fixture.Noon}}}
	adopted.Resource.GetLabels()[v1alpha1.InstanceTypeLabel] = "removed"
	if ended, err := r.endAdoption(t.Context(), adopted); ended || err != nil {
		t.Errorf("the adoption has ended: %t (%v)", ended, err)
	}
	stored := &clusterv1.MachineDeployment{}
	if err := clusters.Management.GetClient().Get(t.Context(), client.ObjectKeyFromObject(deployment), stored); err != nil || !scalable.Adopted(stored) {
		t.Errorf("got %v and %v, want that it stays adopted", err, stored.Annotations)
	}

	r, _ = reconciler()
	ending := decide(&snapshot.Snapshot{Name: "general", Ending: true, Resource: scalable.New(withReplicas(1)), Template: template(), Claims: []karpv1.NodeClaim{*launchedClaim("removed")}, State: planner.State{Now: fixture.Noon}})
	ending.Resource.SetLabels(map[string]string{v1alpha1.InstanceTypeLabel: "removed", v1alpha1.CapacityTypeLabel: karpv1.CapacityTypeOnDemand})
	if err := r.moveWaiting(t.Context(), ending); err != nil {
		t.Errorf("claims of an offering that may be discovered later: got %v", err)
	}
}
