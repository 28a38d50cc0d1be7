// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

func TestPrerequisites(t *testing.T) {
	tests := map[string]struct {
		change        func(*clusterv1.Cluster, *clusterv1.Machine, *infrav1.SimulatedMachine)
		wantFinalizer bool
		wantReason    string
		wantStarted   bool
	}{
		"all are met": {
			change:        func(*clusterv1.Cluster, *clusterv1.Machine, *infrav1.SimulatedMachine) {},
			wantFinalizer: true,
			wantReason:    clusterv1.NotProvisionedReason,
			wantStarted:   true,
		},
		"a data secret without a name is bootstrap data": {
			change: func(_ *clusterv1.Cluster, owner *clusterv1.Machine, _ *infrav1.SimulatedMachine) {
				owner.Spec.Bootstrap.DataSecretName = ptr.To("")
			},
			wantFinalizer: true,
			wantReason:    clusterv1.NotProvisionedReason,
			wantStarted:   true,
		},
		"no owner": {
			change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine, machine *infrav1.SimulatedMachine) {
				machine.OwnerReferences = nil
			},
		},
		"an owner that is not the controller": {
			change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine, machine *infrav1.SimulatedMachine) {
				machine.OwnerReferences[0].Controller = nil
			},
		},
		"still owned by a MachineSet": {
			change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine, machine *infrav1.SimulatedMachine) {
				machine.OwnerReferences[0].Kind = "MachineSet"
			},
		},
		"owned by another group's Machine": {
			change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine, machine *infrav1.SimulatedMachine) {
				machine.OwnerReferences[0].APIVersion = "machine.openshift.io/v1beta1"
			},
		},
		"an owner with the same name and another UID": {
			change: func(_ *clusterv1.Cluster, owner *clusterv1.Machine, _ *infrav1.SimulatedMachine) {
				owner.UID = "another"
			},
		},
		"no cluster label": {
			change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine, machine *infrav1.SimulatedMachine) {
				machine.Labels = nil
			},
		},
		"the cluster of the label does not exist": {
			change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine, machine *infrav1.SimulatedMachine) {
				machine.Labels[clusterv1.ClusterNameLabel] = "another"
			},
		},
		"the cluster's infrastructure is not provisioned": {
			change: func(cluster *clusterv1.Cluster, _ *clusterv1.Machine, _ *infrav1.SimulatedMachine) {
				cluster.Status.Initialization.InfrastructureProvisioned = nil
			},
			wantFinalizer: true,
			wantReason:    clusterv1.WaitingForClusterInfrastructureReadyReason,
		},
		"no bootstrap data": {
			change: func(_ *clusterv1.Cluster, owner *clusterv1.Machine, _ *infrav1.SimulatedMachine) {
				owner.Spec.Bootstrap.DataSecretName = nil
			},
			wantFinalizer: true,
			wantReason:    clusterv1.WaitingForBootstrapDataReason,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, owner, machine := cluster(), ownerMachine(), simulatedMachine()
			tc.change(c, owner, machine)
			w := newWorld(t, c, owner, machine)
			next := w.settle()

			got := w.machine()
			if controllerutil.ContainsFinalizer(got, infrav1.MachineFinalizer) != tc.wantFinalizer {
				t.Errorf("finalizers = %v, want ours: %t", got.Finalizers, tc.wantFinalizer)
			}
			if started := got.Status.StartTime != nil; started != tc.wantStarted || started != (next > 0) {
				t.Errorf("started = %t (next %v), want %t", started, next, tc.wantStarted)
			}
			if tc.wantReason != "" {
				w.wantReady(metav1.ConditionFalse, tc.wantReason)
			} else if w.writes > 0 {
				t.Errorf("%d writes to a machine whose prerequisites are not met", w.writes)
			}
		})
	}
}

func TestPrerequisitesAreMetLater(t *testing.T) {
	c, owner := cluster(), ownerMachine()
	c.Status.Initialization.InfrastructureProvisioned = nil
	owner.Spec.Bootstrap.DataSecretName = nil
	w := newWorld(t, c, owner, simulatedMachine())
	w.settle()

	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	if err := w.management.Status().Update(w.ctx, c); err != nil {
		t.Fatal(err)
	}
	w.settleAfter(time.Hour)
	w.wantReady(metav1.ConditionFalse, clusterv1.WaitingForBootstrapDataReason)

	w.update(owner, func() { owner.Spec.Bootstrap.DataSecretName = ptr.To("data") })
	if next := w.settleAfter(time.Hour); next != 2*time.Second {
		t.Errorf("the provider ID is due in %v: the delays must begin at the start", next)
	}
}

func TestFullLife(t *testing.T) {
	w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())

	if next := w.settle(); next != 2*time.Second {
		t.Errorf("next step in %v, want the provider ID in 2s", next)
	}
	w.wantReady(metav1.ConditionFalse, clusterv1.NotProvisionedReason)
	w.wantCondition(clusterv1.PausedCondition, metav1.ConditionFalse, clusterv1.NotPausedReason)

	if next := w.settleAfter(2 * time.Second); next != time.Second {
		t.Errorf("next step in %v, want the provisioning in 1s", next)
	}
	if machine := w.machine(); machine.Spec.ProviderID != providerID || isProvisioned(machine) {
		t.Errorf("provider ID = %q, provisioned = %t, want %q and not yet", machine.Spec.ProviderID, isProvisioned(machine), providerID)
	}

	if next := w.settleAfter(time.Second); next != 3*time.Second {
		t.Errorf("next step in %v, want the Node in 3s", next)
	}
	w.wantReady(metav1.ConditionTrue, clusterv1.ProvisionedReason)
	if node := w.node(); node != nil {
		t.Errorf("the Node has joined too early: %v", node)
	}

	if next := w.settleAfter(3 * time.Second); next != 0 {
		t.Errorf("next step in %v, want none", next)
	}
	machine, node := w.machine(), w.node()
	if node == nil {
		t.Fatal("no Node has joined")
	}
	if diff := cmp.Diff(newNode(machine, ownerMachine()).Spec, node.Spec); diff != "" {
		t.Errorf("Node (-want +got):\n%s", diff)
	}
	if len(node.Status.Conditions) > 0 {
		t.Errorf("the Node's conditions are kwok's to set: %v", node.Status.Conditions)
	}
	want := infrav1.SimulatedMachineStatus{
		Initialization: infrav1.SimulatedInitialization{Provisioned: ptr.To(true)},
		FailureDomain:  "zone-b",
		Addresses:      []clusterv1.MachineAddress{{Type: "Hostname", Address: machineName}, {Type: "InternalDNS", Address: machineName}},
		NodeName:       machineName,
	}
	got := machine.Status
	if got.StartTime == nil || !got.StartTime.Time.Equal(epoch) {
		t.Errorf("start time = %v, want %v", got.StartTime, epoch)
	}
	got.Conditions, got.StartTime = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestNoWritesWhenSettled(t *testing.T) {
	for name, nodeReady := range map[string]bool{"kwok": false, "node ready": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())
			w.nodeReady = nodeReady
			w.settle()
			w.settleAfter(2 * time.Second)
			w.settleAfter(time.Hour)
			settled := w.writes
			for range 5 {
				w.settleAfter(time.Hour)
			}
			if w.writes != settled {
				t.Errorf("%d writes to a settled machine", w.writes-settled)
			}
			// Finalizer, start, provider ID, Node, and one status write for everything that was due then.
			if settled != 5 {
				t.Errorf("%d writes for a whole life, want 5", settled)
			}
		})
	}
}

func TestFailure(t *testing.T) {
	failing := simulatedMachine()
	failing.Spec.Failure = &infrav1.Failure{Percent: 100, Reason: "InsufficientInstanceCapacity", Message: "we are out of m-large"}
	w := newWorld(t, cluster(), ownerMachine(), failing)
	w.settle()
	w.wantReady(metav1.ConditionFalse, clusterv1.NotProvisionedReason)

	if next := w.settleAfter(2 * time.Second); next != 0 {
		t.Errorf("next step of a failed instance in %v", next)
	}
	w.wantReady(metav1.ConditionFalse, "InsufficientInstanceCapacity")
	w.settleAfter(time.Hour)
	if machine := w.machine(); machine.Spec.ProviderID != "" || isProvisioned(machine) || w.node() != nil {
		t.Errorf("a failed instance has a Node: %v", machine)
	}

	w.update(failing, func() { failing.Spec.Failure.Reason = "" })
	w.settle()
	w.wantReady(metav1.ConditionFalse, InstanceFailedReason)

	w.update(failing, func() { failing.Spec.Failure = nil })
	w.settle()
	w.wantReady(metav1.ConditionTrue, clusterv1.ProvisionedReason)
}

func TestZone(t *testing.T) {
	owner := ownerMachine()
	owner.Spec.FailureDomain = ""
	w := newWorld(t, cluster(), owner, simulatedMachine())
	w.settle()
	w.settleAfter(time.Hour)
	if got := w.machine().Status.FailureDomain; got != "zone-a" {
		t.Errorf("failure domain = %q, want the spec's zone", got)
	}
	if got := w.node().Labels[corev1.LabelTopologyZone]; got != "zone-a" {
		t.Errorf("zone of the Node = %q, want the spec's", got)
	}
}

func TestStartedInstanceGoesOn(t *testing.T) {
	c := cluster()
	w := newWorld(t, c, ownerMachine(), simulatedMachine())
	w.settle()
	c.Status.Initialization.InfrastructureProvisioned = nil
	if err := w.management.Status().Update(w.ctx, c); err != nil {
		t.Fatal(err)
	}
	w.settleAfter(time.Hour)
	w.wantReady(metav1.ConditionTrue, clusterv1.ProvisionedReason)
}

func TestNodeIsNotMadeAgain(t *testing.T) {
	for name, nodeReady := range map[string]bool{"kwok": false, "node ready": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())
			w.nodeReady = nodeReady
			w.settle()
			w.settleAfter(time.Hour)
			if err := w.workload.Delete(w.ctx, w.node()); err != nil {
				t.Fatal(err)
			}
			w.settleAfter(time.Hour)
			if w.node() != nil {
				t.Error("the Node was created again")
			}
			w.wantReady(metav1.ConditionTrue, clusterv1.ProvisionedReason)
		})
	}
}

// TestStaleCacheDoesNotBringTheNodeBack gives a reconciler the machine from before its Node joined.
func TestStaleCacheDoesNotBringTheNodeBack(t *testing.T) {
	w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())
	w.settle()
	w.settleAfter(2 * time.Second)
	stale := w.machine()
	w.settleAfter(time.Hour)
	if err := w.workload.Delete(w.ctx, w.node()); err != nil {
		t.Fatal(err)
	}
	result, err := w.reconcileStale(stale)
	if err != nil || result.RequeueAfter != conflictRetry {
		t.Errorf("a conflict returned %v, %v, want a retry in %v", result, err, conflictRetry)
	}
	if w.node() != nil {
		t.Error("the Node was created again")
	}
	if w.machine().Status.NodeName != machineName {
		t.Error("an old status overwrote a newer one")
	}
}

// TestStaleCacheDoesNotJoinADeletedMachine gives a reconciler the machine from before it was deleted.
func TestStaleCacheDoesNotJoinADeletedMachine(t *testing.T) {
	w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())
	w.settle()
	w.settleAfter(2 * time.Second)
	stale := w.machine()
	w.deleteMachine()
	w.clock.SetTime(epoch.Add(time.Hour))
	if _, err := w.reconcileStale(stale); err != nil {
		t.Fatal(err)
	}
	if w.node() != nil {
		t.Error("an instance that is being terminated has joined")
	}
}

func TestNodeNameOfSomebodyElse(t *testing.T) {
	w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machineName}, Spec: corev1.NodeSpec{ProviderID: "sim://other"}}
	if err := w.workload.Create(w.ctx, other); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.clock.SetTime(epoch.Add(time.Hour))
	var err error
	for range 5 {
		_, err = w.reconcileOnce()
	}
	if err == nil {
		t.Error("no error although the name of the Node is in use")
	}
	w.wantReady(metav1.ConditionTrue, clusterv1.ProvisionedReason)
	if name := w.machine().Status.NodeName; name != "" {
		t.Errorf("node name = %q, want none", name)
	}

	w.deleteMachine()
	w.settle()
	w.settleAfter(time.Hour)
	if w.machine() != nil || w.lease() != nil || w.node() == nil {
		t.Error("the machine must be deleted and must not change another machine's Node and lease")
	}
}

func TestPaused(t *testing.T) {
	byCluster := func(c *clusterv1.Cluster, _ *infrav1.SimulatedMachine, paused bool) { c.Spec.Paused = ptr.To(paused) }
	byAnnotation := func(_ *clusterv1.Cluster, machine *infrav1.SimulatedMachine, paused bool) {
		delete(machine.Annotations, clusterv1.PausedAnnotation)
		if paused {
			machine.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		}
	}
	for name, pause := range map[string]func(*clusterv1.Cluster, *infrav1.SimulatedMachine, bool){
		"by the cluster": byCluster, "by annotation": byAnnotation,
	} {
		t.Run(name, func(t *testing.T) {
			c, machine := cluster(), simulatedMachine()
			w := newWorld(t, c, ownerMachine(), machine)
			set := func(paused bool) {
				w.update(c, func() { pause(c, &infrav1.SimulatedMachine{}, paused) })
				w.update(machine, func() { pause(&clusterv1.Cluster{}, machine, paused) })
			}
			w.settle()

			set(true)
			w.settleAfter(time.Hour)
			w.wantCondition(clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason)
			w.wantReady(metav1.ConditionFalse, clusterv1.NotProvisionedReason)
			settled := w.writes
			w.settleAfter(time.Hour)
			if w.writes != settled {
				t.Errorf("%d writes to a paused machine", w.writes-settled)
			}

			set(false)
			w.settle()
			w.wantCondition(clusterv1.PausedCondition, metav1.ConditionFalse, clusterv1.NotPausedReason)
			w.wantReady(metav1.ConditionTrue, clusterv1.ProvisionedReason)

			set(true)
			w.deleteMachine()
			w.settleAfter(time.Hour)
			w.settleAfter(time.Hour)
			if w.machine() == nil || w.lease() != nil {
				t.Error("a paused machine was terminated")
			}

			set(false)
			w.settle()
			w.settleAfter(time.Hour)
			if w.machine() != nil {
				t.Error("the machine still exists")
			}
		})
	}
}

// reconcileStale reconciles with a cache that has an earlier state of the machine; writes go to the API server.
func (w *testCluster) reconcileStale(stale *infrav1.SimulatedMachine) (ctrl.Result, error) {
	old := interceptor.NewClient(w.management, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if machine, ok := obj.(*infrav1.SimulatedMachine); ok {
				stale.DeepCopyInto(machine)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	r := &machineReconciler{Client: w.counted(old), live: w.management, workload: w.counted(w.workload), clock: w.clock}
	return r.Reconcile(w.ctx, requestFor(namespace, machineName)[0])
}
