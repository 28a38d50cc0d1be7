// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/samber/lo"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// observer sees every state of the objects that it watches, from before the first of them is created. It is for stacks
// with one control plane whose API server is not stopped, because there resourceVersions put the writes of all objects
// in one order.
type observer struct {
	mutex sync.Mutex
	// marks are the unavailable offerings that templates ever had.
	marks map[string]string
	// failed are the NodeClaims whose condition MachineAvailable was ever False, and why.
	failed map[string]string
	// clusterReady are the reasons that the templates' condition ClusterReady ever had.
	clusterReady map[string]bool
	// machines are all Machines that ever existed, and whether each ever had a provider ID.
	machines map[types.UID]bool
	// ending is the resourceVersion of the deletion of the Cluster; zero before it.
	ending uint64
	// drifted are the NodeClaims that were ever drifted, and why.
	drifted map[string]string
	// disrupted are the NodeClaims that Karpenter is replacing, and mostDisrupted is how many these ever were.
	disrupted     map[string]bool
	mostDisrupted int
	// healthy are the PodDisruptionBudgets that ever had enough Pods, and broken those that had too few later.
	healthy, broken map[string]bool
	// raises are the writes that raised the replicas of a MachineDeployment or MachinePool, or created it.
	raises []raise
}

// raise is one write of replicas.
type raise struct {
	resourceVersion uint64
	what            string
}

// newObserver starts an observer that ends with the test.
func newObserver(ctx context.Context, t *testing.T, s *stack.Stack) *observer {
	t.Helper()
	w := &observer{marks: map[string]string{}, failed: map[string]string{}, clusterReady: map[string]bool{}, machines: map[types.UID]bool{},
		drifted: map[string]string{}, disrupted: map[string]bool{}, healthy: map[string]bool{}, broken: map[string]bool{}}
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.see(nil, object) },
		UpdateFunc: func(before, object any) { w.see(before, object) },
		DeleteFunc: w.seeDeletion,
	}
	handleChanges(ctx, t, s.Kubeconfig(), handler, &v1alpha1.KarpenterMachineTemplate{}, &karpv1.NodeClaim{}, &policyv1.PodDisruptionBudget{})
	handleChanges(ctx, t, s.ManagementKubeconfig(), handler, &clusterv1.Cluster{}, &clusterv1.Machine{}, &clusterv1.MachineDeployment{}, &clusterv1.MachinePool{})
	return w
}

// see records the next state of an object.
func (w *observer) see(before, object any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch object := object.(type) {
	case *v1alpha1.KarpenterMachineTemplate:
		for _, o := range object.Status.UnavailableOfferings {
			w.marks[fmt.Sprintf("%s: %s/%s/%s", object.Name, o.InstanceType, o.Zone, o.CapacityType)] = o.Reason + ": " + o.Message
		}
		if condition := object.DeepCopy().StatusConditions().Get(v1alpha1.ConditionClusterReady); condition != nil {
			w.clusterReady[condition.Reason] = true
		}
	case *karpv1.NodeClaim:
		if condition := object.DeepCopy().StatusConditions().Get(v1alpha1.ConditionMachineAvailable); condition.IsFalse() {
			w.failed[object.Name] = condition.Reason + ": " + condition.Message
		}
		if condition := object.DeepCopy().StatusConditions().Get(karpv1.ConditionTypeDrifted); condition.IsTrue() {
			w.drifted[object.Name] = condition.Reason
		}
		// A Node whose machine is being terminated does not count against a budget any more (karpenter:
		// pkg/controllers/disruption/helpers.go, BuildDisruptionBudgetMapping).
		if conditions := object.DeepCopy().StatusConditions(); conditions.IsTrue(karpv1.ConditionTypeDisruptionReason) && !conditions.IsTrue(karpv1.ConditionTypeInstanceTerminating) {
			w.disrupted[object.Name] = true
			w.mostDisrupted = max(w.mostDisrupted, len(w.disrupted))
		} else {
			delete(w.disrupted, object.Name)
		}
	case *policyv1.PodDisruptionBudget:
		// The status is computed some time after the first Pods run.
		enough := object.Status.ObservedGeneration > 0 && object.Status.CurrentHealthy >= object.Status.DesiredHealthy
		w.healthy[object.Name] = w.healthy[object.Name] || enough
		w.broken[object.Name] = w.broken[object.Name] || w.healthy[object.Name] && !enough
	case *clusterv1.Cluster:
		if w.ending == 0 && !object.DeletionTimestamp.IsZero() {
			w.ending = versionOf(object)
		}
	case *clusterv1.Machine:
		w.machines[object.UID] = w.machines[object.UID] || object.Spec.ProviderID != ""
	case *clusterv1.MachineDeployment:
		old, _ := before.(*clusterv1.MachineDeployment)
		if old == nil {
			old = &clusterv1.MachineDeployment{}
		}
		w.seeReplicas(object, old.Spec.Replicas, object.Spec.Replicas)
	case *clusterv1.MachinePool:
		old, _ := before.(*clusterv1.MachinePool)
		if old == nil {
			old = &clusterv1.MachinePool{}
		}
		w.seeReplicas(object, old.Spec.Replicas, object.Spec.Replicas)
	}
}

// seeDeletion records that an object no longer exists.
func (w *observer) seeDeletion(object any) {
	if claim, is := object.(*karpv1.NodeClaim); is {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		delete(w.disrupted, claim.Name)
	}
}

func (w *observer) seeReplicas(object client.Object, before, after *int32) {
	if from, to := ptr.Deref(before, 0), ptr.Deref(after, 0); from < to {
		w.raises = append(w.raises, raise{versionOf(object), fmt.Sprintf("%T %s from %d to %d", object, object.GetName(), from, to)})
	}
}

func versionOf(object client.Object) uint64 {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(err) // The resourceVersions of API servers are numbers (KEP-5504).
	}
	return version
}

// everMarked returns the offerings that were ever marked as unavailable, and why.
func (w *observer) everMarked() map[string]string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return maps.Clone(w.marks)
}

// everFailed returns the NodeClaims that ever failed, and why.
func (w *observer) everFailed() map[string]string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return maps.Clone(w.failed)
}

// everDrifted returns the NodeClaims that were ever drifted, and why.
func (w *observer) everDrifted() map[string]string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return maps.Clone(w.drifted)
}

// mostDisruptedEver returns how many NodeClaims Karpenter ever replaced at once.
func (w *observer) mostDisruptedEver() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.mostDisrupted
}

// budgetsEverBroken returns the PodDisruptionBudgets that ever had too few Pods, after they had enough.
func (w *observer) budgetsEverBroken() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Sorted(maps.Keys(lo.PickByValues(w.broken, []bool{true})))
}

// reasonsOfClusterReady returns the reasons that the condition ever had.
func (w *observer) reasonsOfClusterReady() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Sorted(maps.Keys(w.clusterReady))
}

// raisedWhileEnding returns the writes that raised replicas after the deletion of the Cluster.
func (w *observer) raisedWhileEnding() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var found []string
	for _, r := range w.raises {
		if w.ending != 0 && r.resourceVersion > w.ending {
			found = append(found, r.what)
		}
	}
	return found
}

// launchedEver returns how many Machines ever had a provider ID.
func (w *observer) launchedEver() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return lo.CountBy(slices.Collect(maps.Values(w.machines)), func(launched bool) bool { return launched })
}

// machinesEver returns how many Machines ever existed.
func (w *observer) machinesEver() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.machines)
}
