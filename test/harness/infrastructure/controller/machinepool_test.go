// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

func TestPoolPrerequisites(t *testing.T) {
	for name, tc := range map[string]struct {
		change        func(*clusterv1.Cluster, *clusterv1.MachinePool, *infrav1.SimulatedMachinePool)
		wantFinalizer bool
		wantReason    string
		wantInstances int
	}{
		"all are met": {
			change:        func(*clusterv1.Cluster, *clusterv1.MachinePool, *infrav1.SimulatedMachinePool) {},
			wantFinalizer: true, wantReason: clusterv1.ProvisionedReason, wantInstances: 3,
		},
		"no owner": {
			change: func(_ *clusterv1.Cluster, _ *clusterv1.MachinePool, pool *infrav1.SimulatedMachinePool) {
				pool.OwnerReferences = nil
			},
		},
		"an owner with the same name and another UID": {
			change: func(_ *clusterv1.Cluster, owner *clusterv1.MachinePool, _ *infrav1.SimulatedMachinePool) {
				owner.UID = "another"
			},
		},
		"no cluster label": {
			change: func(_ *clusterv1.Cluster, _ *clusterv1.MachinePool, pool *infrav1.SimulatedMachinePool) {
				pool.Labels = nil
			},
		},
		"paused": {
			change: func(cluster *clusterv1.Cluster, _ *clusterv1.MachinePool, _ *infrav1.SimulatedMachinePool) {
				cluster.Spec.Paused = ptr.To(true)
			},
		},
		"the cluster's infrastructure is not provisioned": {
			change: func(cluster *clusterv1.Cluster, _ *clusterv1.MachinePool, _ *infrav1.SimulatedMachinePool) {
				cluster.Status.Initialization.InfrastructureProvisioned = nil
			},
			wantFinalizer: true, wantReason: clusterv1.WaitingForClusterInfrastructureReadyReason,
		},
		"no bootstrap data": {
			change: func(_ *clusterv1.Cluster, owner *clusterv1.MachinePool, _ *infrav1.SimulatedMachinePool) {
				owner.Spec.Template.Spec.Bootstrap.DataSecretName = nil
			},
			wantFinalizer: true, wantReason: clusterv1.WaitingForBootstrapDataReason,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, owner, pool := cluster(), machinePool(), simulatedPool()
			tc.change(c, owner, pool)
			w := newPoolWorld(t, c, owner, pool)
			w.settle()
			if got := controllerutil.ContainsFinalizer(w.pool(), infrav1.MachinePoolFinalizer); got != tc.wantFinalizer {
				t.Errorf("finalizer = %t, want %t", got, tc.wantFinalizer)
			}
			if tc.wantReason != "" {
				status := metav1.ConditionFalse
				if tc.wantInstances > 0 {
					status = metav1.ConditionTrue
				}
				w.wantReady(status, tc.wantReason)
			}
			if got := len(w.instances()); got != tc.wantInstances {
				t.Errorf("%d instances, want %d", got, tc.wantInstances)
			}
		})
	}
}

func TestPoolReportsItsInstances(t *testing.T) {
	for _, withoutMachines := range []bool{false, true} {
		t.Run(fmt.Sprintf("without Machines %t", withoutMachines), func(t *testing.T) {
			w := newPoolWorld(t, cluster(), machinePool(), simulatedPool(func(pool *infrav1.SimulatedMachinePool) {
				pool.Spec.Behavior.WithoutMachines = withoutMachines
			}))
			w.settle()
			pool := w.pool()
			if !pool.Status.Ready || !ptr.Deref(pool.Status.Initialization.Provisioned, false) || pool.Status.Replicas != 3 || len(pool.Spec.ProviderIDList) != 3 {
				t.Errorf("spec = %+v, status = %+v", pool.Spec.ProviderIDList, pool.Status)
			}
			if got := pool.Status.InfrastructureMachineKind; got == "" != withoutMachines {
				t.Errorf("infrastructureMachineKind = %q", got)
			}
			for _, instance := range w.instances() {
				if instance.Labels[clusterv1.MachinePoolNameLabel] != "mp" || instance.Labels[clusterv1.ClusterNameLabel] != "c" {
					t.Errorf("labels = %v", instance.Labels)
				}
				if !slices.Contains(pool.Spec.ProviderIDList, instance.Spec.ProviderID) || instance.Spec.ProviderID == "" {
					t.Errorf("provider ID %q is not in the list %v", instance.Spec.ProviderID, pool.Spec.ProviderIDList)
				}
				node := get(w.testCluster, w.workload, &corev1.Node{}, "", instance.Name)
				if node == nil || node.Status.NodeInfo.KubeletVersion != "v1.36.3" || node.Labels[corev1.LabelTopologyZone] != "zone-b" {
					t.Errorf("Node = %v", node)
				}
			}
		})
	}
}

func TestPoolScalesDown(t *testing.T) {
	strict, lenient, ignoring := infrav1.PoolBehavior{}, infrav1.PoolBehavior{Lenient: true}, infrav1.PoolBehavior{IgnoreDeleteAnnotation: true}
	none := infrav1.PoolBehavior{WithoutMachines: true}
	for name, tc := range map[string]struct {
		behavior infrav1.PoolBehavior
		// do acts on the pool with three instances; chosen is the instance that it selects.
		do func(w poolTestCluster, chosen string)
		// want is how many instances are left, and wantGone whether the chosen one is deleted.
		want     int
		wantGone bool
	}{
		"annotated, then lowered": {
			behavior: strict, do: func(w poolTestCluster, chosen string) { w.annotate(chosen); w.scale(2) }, want: 2, wantGone: true,
		},
		"annotated only": {
			behavior: strict, do: func(w poolTestCluster, chosen string) { w.annotate(chosen) }, want: 3,
		},
		"annotated only, and removed nevertheless: it is replaced": {
			behavior: infrav1.PoolBehavior{RemoveAnnotated: true}, do: func(w poolTestCluster, chosen string) { w.annotate(chosen) }, want: 3, wantGone: true,
		},
		"deleted only: it is replaced": {
			behavior: strict, do: func(w poolTestCluster, chosen string) { w.delete(w.machineOf(chosen)) }, want: 3, wantGone: true,
		},
		"deleted only: a lenient pool does not replace it": {
			behavior: lenient, do: func(w poolTestCluster, chosen string) { w.delete(w.machineOf(chosen)) }, want: 2, wantGone: true,
		},
		"the instance deleted only: it is replaced": {
			behavior: strict, do: func(w poolTestCluster, chosen string) { w.delete(w.instanceOf(chosen)) }, want: 3, wantGone: true,
		},
		"annotated, then lowered, and the annotation ignored": {
			behavior: ignoring, do: func(w poolTestCluster, chosen string) { w.annotate(chosen); w.scale(2) }, want: 2, wantGone: false,
		},
		"to nothing": {
			behavior: ignoring, do: func(w poolTestCluster, _ string) { w.scale(0) }, want: 0, wantGone: true,
		},
		"to nothing, without Machines": {
			behavior: none, do: func(w poolTestCluster, _ string) { w.scale(0) }, want: 0, wantGone: true,
		},
		"up": {
			behavior: strict, do: func(w poolTestCluster, _ string) { w.scale(5) }, want: 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPoolWorld(t, cluster(), machinePool(), simulatedPool(func(pool *infrav1.SimulatedMachinePool) { pool.Spec.Behavior = tc.behavior }))
			w.run()
			chosen := w.lastToGo()
			tc.do(w, chosen)
			w.run()
			live := w.live()
			if len(live) != tc.want || len(w.instances()) != tc.want {
				t.Errorf("%d instances, %d of them live, want %d", len(w.instances()), len(live), tc.want)
			}
			if gone := !slices.Contains(live, chosen); gone != tc.wantGone {
				t.Errorf("the chosen one is deleted: %t, want %t", gone, tc.wantGone)
			}
			if pool := w.pool(); int(pool.Status.Replicas) != tc.want || len(pool.Spec.ProviderIDList) != tc.want {
				t.Errorf("replicas = %d, providerIDList = %v", pool.Status.Replicas, pool.Spec.ProviderIDList)
			}
			if got := len(w.machines()); !tc.behavior.WithoutMachines && got != tc.want {
				t.Errorf("%d Machines, want %d", got, tc.want)
			}
		})
	}
}

// TestPoolWaitsForTheMachine checks that an instance without a Machine stays: Cluster API is about to create one for
// it.
func TestPoolWaitsForTheMachine(t *testing.T) {
	w := newPoolWorld(t)
	w.settle()
	w.scale(0)
	w.settleAfter(time.Minute)
	if got := len(w.live()); got != 3 {
		t.Errorf("%d instances, want 3", got)
	}
	w.run()
	if got := len(w.instances()); got != 0 {
		t.Errorf("%d instances, want none", got)
	}
}

func TestPoolIsDeleted(t *testing.T) {
	for name, machines := range map[string]bool{"with Machines": true, "without Machines": false} {
		t.Run(name, func(t *testing.T) {
			w := newPoolWorld(t)
			w.settle()
			if machines {
				w.core()
			}
			w.delete(w.pool())
			w.settle()
			if w.pool() == nil {
				t.Fatal("the pool was deleted before its instances")
			}
			w.wantReady(metav1.ConditionFalse, clusterv1.DeletingReason)
			for range 3 {
				if machines {
					w.core()
				}
				w.settleAfter(10 * time.Second)
			}
			if w.pool() != nil || len(w.instances()) > 0 {
				t.Errorf("the pool, or one of %d instances, is left", len(w.instances()))
			}
		})
	}
}

// TestPoolCrashes expects the same end after a crash before or after each write of the pool.
func TestPoolCrashes(t *testing.T) {
	play := func(t *testing.T, crash func(*testCluster)) int {
		w := newPoolWorld(t)
		crash(w.testCluster)
		w.run()
		chosen := w.lastToGo()
		w.annotate(chosen)
		w.scale(2)
		w.run()
		if live := w.live(); len(live) != 2 || slices.Contains(live, chosen) {
			t.Errorf("live instances = %v, and %s should be deleted", live, chosen)
		}
		return w.writes
	}
	writes := play(t, func(*testCluster) {})
	for n := 1; n <= writes; n++ {
		t.Run(fmt.Sprint("before write ", n), func(t *testing.T) { play(t, func(w *testCluster) { w.crashBefore = n }) })
		t.Run(fmt.Sprint("after write ", n), func(t *testing.T) { play(t, func(w *testCluster) { w.crashAfter = n }) })
	}
}
