// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// changes are what happens to the NodeClaims and Nodes of a workload cluster, and to everything behind them in a
// management cluster, from the creation of the watch on.
type changes struct {
	mutex sync.Mutex
	seen  []string
}

// newChanges starts to watch. It ends with the test. In a management cluster without Machines it watches nothing,
// because clusterctl is about to create them.
func newChanges(ctx context.Context, t *testing.T, s *stack.Stack) *changes {
	t.Helper()
	w := &changes{}
	handler := toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInInitialList bool) {
			if !isInInitialList {
				w.see("is created", object)
			}
		},
		UpdateFunc: w.update,
		DeleteFunc: func(object any) { w.see("no longer exists", object) },
	}
	handleChanges(ctx, t, s.Kubeconfig(), handler, &karpv1.NodeClaim{}, &corev1.Node{})
	machines := &clusterv1.MachineList{}
	NewWithT(t).Expect(s.Management.List(ctx, machines)).To(Succeed())
	if len(machines.Items) > 0 {
		handleChanges(ctx, t, s.ManagementKubeconfig(), handler,
			&clusterv1.MachineDeployment{}, &clusterv1.MachinePool{}, &clusterv1.MachineSet{}, &clusterv1.Machine{},
			&infrav1.SimulatedMachineTemplate{}, &infrav1.SimulatedMachinePool{}, &infrav1.SimulatedMachine{})
	}
	return w
}

func (w *changes) update(old, object any) {
	before, after := old.(client.Object), object.(client.Object)
	switch {
	case before.GetDeletionTimestamp().IsZero() && !after.GetDeletionTimestamp().IsZero():
		w.see("is deleted", object)
	case replicasOf(before) != replicasOf(after):
		w.see(fmt.Sprintf("gets %d replicas instead of %d", replicasOf(after), replicasOf(before)), object)
	case !isDrifted(before) && isDrifted(after):
		w.see("is drifted", object)
	}
}

func (w *changes) see(what string, object any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if gone, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	kind := reflect.TypeOf(object).Elem().Name()
	w.seen = append(w.seen, fmt.Sprintf("%s: %s %s", what, kind, object.(client.Object).GetName()))
}

// all returns what has happened so far.
func (w *changes) all() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.seen)
}

func replicasOf(object client.Object) int32 {
	switch object := object.(type) {
	case *clusterv1.MachineDeployment:
		return lo.FromPtr(object.Spec.Replicas)
	case *clusterv1.MachineSet:
		return lo.FromPtr(object.Spec.Replicas)
	case *clusterv1.MachinePool:
		return lo.FromPtr(object.Spec.Replicas)
	}
	return 0
}

func isDrifted(object client.Object) bool {
	claim, is := object.(*karpv1.NodeClaim)
	return is && claim.DeepCopy().StatusConditions().IsTrue(karpv1.ConditionTypeDrifted)
}
