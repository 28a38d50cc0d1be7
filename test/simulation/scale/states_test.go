// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/scalableresource"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

const resource = "general"

// states are what a scalable resource with n claims can be in, with what differs for claim i and its
// Machine.
var states = map[string]func(i int, claim *karpv1.NodeClaim, machine *clusterv1.Machine) (hasMachine bool){
	"settled": func(_ int, claim *karpv1.NodeClaim, machine *clusterv1.Machine) bool {
		linkTo(claim, machine)
		register(claim, machine)
		return true
	},
	"no Machines yet": func(int, *karpv1.NodeClaim, *clusterv1.Machine) bool { return false },
	"half of the claims wait": func(i int, claim *karpv1.NodeClaim, machine *clusterv1.Machine) bool {
		if i%2 == 0 {
			return false
		}
		linkTo(claim, machine)
		return true
	},
	"booting": func(_ int, claim *karpv1.NodeClaim, machine *clusterv1.Machine) bool {
		linkTo(claim, machine)
		conditions.Set(machine, metav1.Condition{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "NotReady"})
		return true
	},
	"to be linked": func(_ int, _ *karpv1.NodeClaim, machine *clusterv1.Machine) bool { return true },
	"leaving": func(_ int, claim *karpv1.NodeClaim, machine *clusterv1.Machine) bool {
		linkTo(claim, machine)
		register(claim, machine)
		claim.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
		machine.Annotations[v1alpha1.MarkedForDeletionAtAnnotation] = timestamp.Format(fixture.Noon)
		return true
	},
	"deleted by a user": func(_ int, claim *karpv1.NodeClaim, machine *clusterv1.Machine) bool {
		linkTo(claim, machine)
		register(claim, machine)
		machine.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
		return true
	},
	"half of the claims no longer exist": func(i int, claim *karpv1.NodeClaim, machine *clusterv1.Machine) bool {
		linkTo(claim, machine)
		if i%2 == 0 {
			claim.Annotations = nil
		}
		return true
	},
}

func linkTo(claim *karpv1.NodeClaim, machine *clusterv1.Machine) {
	machine.Labels[v1alpha1.NodeClaimUIDLabel] = string(claim.UID)
	machine.Annotations = map[string]string{v1alpha1.NodeClaimAnnotation: claim.Name, v1alpha1.DrainHookAnnotation: ""}
}

func register(claim *karpv1.NodeClaim, machine *clusterv1.Machine) {
	machine.Spec.ProviderID = "sim://" + machine.Name
	machine.Status.NodeRef.Name = machine.Name
	claim.Status.ProviderID = machine.Spec.ProviderID
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
}

// objects returns a scalable resource with n claims in a state.
func objects(state string, n int) []client.Object {
	served := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
	labels := map[string]string{clusterv1.ClusterNameLabel: served.Name, v1alpha1.TemplateLabel: resource, clusterv1.MachineDeploymentNameLabel: resource}
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: resource, UID: "d", Labels: labels}}
	deployment.Spec.Replicas = new(int32(n))
	set := fixture.MachineSet(resource+"-1", resource, int32(n))
	set.Labels = labels
	all := []client.Object{served, deployment, set, fixture.Template()}
	for i := range n {
		claim := fixture.Claim(time.Minute)
		claim.Name, claim.UID = fmt.Sprintf("c%05d", i), types.UID(fmt.Sprintf("c%05d", i))
		claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: resource}
		claim.Labels = map[string]string{karpv1.NodePoolLabelKey: "pool"}
		claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: resource}
		claim.Status.ProviderID = planner.ProvisionalID(claim.UID)
		machine := fixture.Machine(30 * time.Second)
		machine.Namespace, machine.Name, machine.UID = served.Namespace, fmt.Sprintf("m%05d", i), types.UID(fmt.Sprintf("m%05d", i))
		machine.Labels = map[string]string{}
		for key, value := range labels {
			machine.Labels[key] = value
		}
		if states[state](i, claim, machine) {
			all = append(all, machine)
		}
		all = append(all, claim)
	}
	return all
}

// newReconciler returns the reconciler of the scalable resource with n claims in a state.
func newReconciler(state string, n int) reconcile.Reconciler {
	both := fixture.Cluster{Client: newStore(objects(state, n)...)}
	clusters := &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both, Allowed: fixture.Allowed}
	known, clock := catalog.New(clusters), clocktesting.NewFakePassiveClock(fixture.Noon)
	return scalableresource.NewReconciler(clusters, known, link.NewReconciler(clusters, silent{}), silent{}, clock,
		func(string) []types.NamespacedName { return nil })
}

// run reconciles the scalable resource once.
func run(tb testing.TB, reconciler reconcile.Reconciler) {
	tb.Helper()
	if _, err := reconciler.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resource}}); err != nil {
		tb.Fatal(err)
	}
}

// silent drops events.
type silent struct{}

func (silent) Publish(...events.Event) {}
