// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/model"
)

const poolName = "p"

// poolTestCluster is a testCluster with a pool. Method core simulates Cluster API.
type poolTestCluster struct{ *testCluster }

func newPoolWorld(t *testing.T, objects ...client.Object) poolTestCluster {
	t.Helper()
	if len(objects) == 0 {
		objects = []client.Object{cluster(), machinePool(), simulatedPool()}
	}
	return poolTestCluster{newWorld(t, objects...)}
}

// settle reconciles the pool and its instances until there is nothing to write.
func (w poolTestCluster) settle() {
	w.t.Helper()
	for range 40 {
		before := w.writes
		w.do(w.reconcilePool())
		for _, machine := range w.instances() {
			_, err := w.reconcileMachine(machine.Name)
			w.do(err)
		}
		if w.writes == before {
			return
		}
	}
	w.t.Fatal("the pool does not settle")
}

func (w poolTestCluster) settleAfter(d time.Duration) {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(d))
	w.settle()
}

func (w poolTestCluster) reconcilePool() error {
	r := &machinePoolReconciler{Client: w.counted(w.management), live: w.management, clock: w.clock}
	_, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: poolName}})
	return err
}

func (w poolTestCluster) do(err error) {
	w.t.Helper()
	if err != nil && !errors.Is(err, errCrash) {
		w.t.Fatal(err)
	}
}

// core creates the Machines of instances that have none, and acts as their Machine controller: the deletion of a
// Machine deletes its instance first.
func (w poolTestCluster) core() {
	w.t.Helper()
	for _, instance := range w.instances() {
		if metav1.GetControllerOf(&instance) != nil {
			continue
		}
		machine := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: instance.Name, UID: types.UID("machine-" + instance.Name),
				Finalizers: []string{clusterv1.MachineFinalizer},
			},
			Spec: clusterv1.MachineSpec{ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("")}},
		}
		w.do(w.management.Create(w.ctx, machine))
		w.update(&instance, func() {
			instance.OwnerReferences = append(instance.OwnerReferences, metav1.OwnerReference{
				APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: machine.Name, UID: machine.UID, Controller: ptr.To(true),
			})
		})
	}
	for _, machine := range w.machines() {
		if machine.DeletionTimestamp.IsZero() {
			continue
		}
		instance := get(w.testCluster, w.management, &infrav1.SimulatedMachine{}, namespace, machine.Name)
		if instance == nil {
			w.update(&machine, func() { machine.Finalizers = nil })
		} else {
			w.do(w.management.Delete(w.ctx, instance))
		}
	}
}

func (w poolTestCluster) instances() []infrav1.SimulatedMachine {
	w.t.Helper()
	list := &infrav1.SimulatedMachineList{}
	w.do(w.management.List(w.ctx, list))
	return list.Items
}

func (w poolTestCluster) machines() []clusterv1.Machine {
	w.t.Helper()
	list := &clusterv1.MachineList{}
	w.do(w.management.List(w.ctx, list))
	return list.Items
}

// live returns the names of the instances that are not being deleted.
func (w poolTestCluster) live() []string {
	w.t.Helper()
	var names []string
	for _, instance := range w.instances() {
		if instance.DeletionTimestamp.IsZero() {
			names = append(names, instance.Name)
		}
	}
	return names
}

func (w poolTestCluster) pool() *infrav1.SimulatedMachinePool {
	w.t.Helper()
	return get(w.testCluster, w.management, &infrav1.SimulatedMachinePool{}, namespace, poolName)
}

func (w poolTestCluster) scale(replicas int32) {
	w.t.Helper()
	pool := machinePool()
	w.update(pool, func() { pool.Spec.Replicas = ptr.To(replicas) })
}

func (w poolTestCluster) annotate(name string) {
	w.t.Helper()
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	w.update(machine, func() { machine.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""} })
}

func (w poolTestCluster) delete(obj client.Object) {
	w.t.Helper()
	w.do(w.management.Delete(w.ctx, obj))
}

func (w poolTestCluster) wantReady(status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	condition := meta.FindStatusCondition(w.pool().Status.Conditions, clusterv1.ReadyCondition)
	if condition == nil || condition.Status != status || condition.Reason != reason {
		w.t.Errorf("Ready = %v, want %s, %s", condition, status, reason)
	}
}

func machinePool() *clusterv1.MachinePool {
	return &clusterv1.MachinePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mp", UID: "owner"},
		Spec: clusterv1.MachinePoolSpec{
			ClusterName: "c", Replicas: ptr.To[int32](3), FailureDomains: []string{"zone-b"},
			Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
				ClusterName: "c", Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("none")},
			}},
		},
	}
}

func simulatedPool(change ...func(*infrav1.SimulatedMachinePool)) *infrav1.SimulatedMachinePool {
	pool := &infrav1.SimulatedMachinePool{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: poolName, UID: "pool",
			Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "mp", UID: "owner", Controller: ptr.To(true),
			}},
		},
		Spec: infrav1.SimulatedMachinePoolSpec{SimulatedMachineSpec: infrav1.SimulatedMachineSpec{
			Capacity: resources("cpu", "2"), Zone: "zone-a", Delays: infrav1.Delays{Termination: delay(5 * time.Second)},
		}},
	}
	for _, change := range change {
		change(pool)
	}
	return pool
}

// run lets the provider and Cluster API do everything that is left to do.
func (w poolTestCluster) run() {
	w.t.Helper()
	for range 6 {
		if w.pool().Status.InfrastructureMachineKind != "" {
			w.core()
		}
		w.settleAfter(10 * time.Second)
	}
}

func (w poolTestCluster) machineOf(name string) *clusterv1.Machine {
	w.t.Helper()
	return get(w.testCluster, w.management, &clusterv1.Machine{}, namespace, name)
}

func (w poolTestCluster) instanceOf(name string) *infrav1.SimulatedMachine {
	w.t.Helper()
	return get(w.testCluster, w.management, &infrav1.SimulatedMachine{}, namespace, name)
}

// lastToGo returns the instance that is removed last if no Machine has the annotation.
func (w poolTestCluster) lastToGo() string {
	w.t.Helper()
	instances := w.instances()
	var seen []model.Instance
	for _, instance := range instances {
		seen = append(seen, model.Instance{UID: string(instance.UID)})
	}
	_, order := model.MachinePool(model.PoolProvider{}, 0, -1, seen)
	for _, instance := range instances {
		if string(instance.UID) == order[len(order)-1] {
			return instance.Name
		}
	}
	w.t.Fatal("there are no instances")
	return ""
}
