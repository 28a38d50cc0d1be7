// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// kwokLease is a lease that kwok holds and has just renewed.
func kwokLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: machineName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("kwok"), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(microTime(epoch)),
		},
	}
}

func TestDeletionInEveryState(t *testing.T) {
	tests := map[string]struct {
		change func(*clusterv1.Cluster, *clusterv1.Machine, *infrav1.SimulatedMachine)
		after  []time.Duration
		// before is done before the machine is deleted.
		before   func(*testing.T, *testCluster)
		wantNode bool
		// wantDelay is whether the termination delay applies.
		wantDelay bool
	}{
		"waiting for its prerequisites": {
			change: func(_ *clusterv1.Cluster, owner *clusterv1.Machine, _ *infrav1.SimulatedMachine) {
				owner.Spec.Bootstrap.DataSecretName = nil
			},
		},
		"just started":       {wantDelay: true},
		"with a provider ID": {after: []time.Duration{2 * time.Second}, wantDelay: true},
		"failed": {
			change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine, machine *infrav1.SimulatedMachine) {
				machine.Spec.Failure = &infrav1.Failure{Percent: 100}
			},
			after: []time.Duration{time.Hour}, wantDelay: true,
		},
		"provisioned": {after: []time.Duration{2 * time.Second, time.Second}, wantDelay: true},
		"joined":      {after: []time.Duration{time.Hour}, wantNode: true, wantDelay: true},
		"the Node no longer exists": {
			after: []time.Duration{time.Hour}, wantDelay: true,
			before: func(t *testing.T, w *testCluster) {
				if err := w.workload.Delete(w.ctx, w.node()); err != nil {
					t.Fatal(err)
				}
			},
		},
		"the owner no longer exists": {
			after: []time.Duration{time.Hour}, wantNode: true, wantDelay: true,
			before: func(t *testing.T, w *testCluster) {
				if err := w.management.Delete(w.ctx, ownerMachine()); err != nil {
					t.Fatal(err)
				}
			},
		},
		"the Cluster no longer exists": {
			after: []time.Duration{time.Hour}, wantNode: true, wantDelay: true,
			before: func(t *testing.T, w *testCluster) {
				if err := w.management.Delete(w.ctx, cluster()); err != nil {
					t.Fatal(err)
				}
			},
		},
	}
	for name, tc := range tests {
		for _, nodeReady := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, node ready %t", name, nodeReady), func(t *testing.T) {
				c, owner, machine := cluster(), ownerMachine(), simulatedMachine()
				if tc.change != nil {
					tc.change(c, owner, machine)
				}
				w := newWorld(t, c, owner, machine)
				w.nodeReady = nodeReady
				w.settle()
				for _, d := range tc.after {
					w.settleAfter(d)
				}
				if tc.before != nil {
					tc.before(t, w)
				}
				w.deleteMachine()
				next := w.settle()
				if tc.wantDelay {
					if next != 5*time.Second {
						t.Errorf("deleted in %v, want the termination delay of 5s", next)
					}
					w.wantReady(metav1.ConditionFalse, clusterv1.DeletingReason)
					settled := w.writes
					if next := w.settleAfter(4 * time.Second); next != time.Second || w.writes != settled {
						t.Errorf("after 4s: deleted in %v with %d writes, want in 1s and none", next, w.writes-settled)
					}
					w.settleAfter(time.Second)
				}
				if w.machine() != nil {
					t.Error("the machine still exists")
				}
				if (w.node() != nil) != tc.wantNode {
					t.Errorf("Node = %v, want one: %t", w.node(), tc.wantNode)
				}
			})
		}
	}
}

// TestDeathWithoutAStatus deletes a machine whose status was lost, as clusterctl move leaves it.
func TestDeathWithoutAStatus(t *testing.T) {
	w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())
	w.settle()
	w.settleAfter(time.Hour)
	machine := w.machine()
	machine.Status = infrav1.SimulatedMachineStatus{}
	if err := w.management.Status().Update(w.ctx, machine); err != nil {
		t.Fatal(err)
	}
	w.deleteMachine()
	if next := w.settle(); next != 5*time.Second || w.lease() == nil {
		t.Errorf("deleted in %v, lease = %v, want the termination delay and a lease that is not renewed", next, w.lease())
	}
}

func TestMachineWithoutOurFinalizerIsNotTouched(t *testing.T) {
	machine := simulatedMachine()
	machine.Finalizers = []string{"example.com/other"}
	w := newWorld(t, cluster(), ownerMachine(), machine)
	w.deleteMachine()
	w.settle()
	if w.writes != 0 {
		t.Errorf("%d writes", w.writes)
	}
}

func TestDeathTakesTheLease(t *testing.T) {
	tests := map[string]struct {
		lease *coordinationv1.Lease
		// wantRenewed is the renewal that must be left in the lease.
		wantRenewed time.Time
	}{
		"held by kwok":       {lease: kwokLease(), wantRenewed: epoch},
		"not created yet":    {wantRenewed: epoch.Add(time.Hour)},
		"without a holder":   {lease: &coordinationv1.Lease{ObjectMeta: kwokLease().ObjectMeta}, wantRenewed: epoch.Add(time.Hour)},
		"already taken over": {lease: heldForGood(), wantRenewed: epoch},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())
			w.settle()
			w.settleAfter(time.Hour)
			if tc.lease != nil {
				if err := w.workload.Create(w.ctx, tc.lease.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			w.deleteMachine()
			w.settle()

			want := coordinationv1.LeaseSpec{
				HolderIdentity:       ptr.To("simulated-infrastructure"),
				LeaseDurationSeconds: ptr.To[int32](math.MaxInt32),
				RenewTime:            ptr.To(microTime(tc.wantRenewed)),
			}
			if diff := cmp.Diff(want, w.lease().Spec); diff != "" {
				t.Errorf("lease (-want +got):\n%s", diff)
			}
			node := w.node()
			if node.Annotations[KwokAnnotation] != KwokAnnotationValue {
				t.Error("without its annotation kwok never learns that the Node was deleted")
			}
			if tc.lease == nil && (len(w.lease().OwnerReferences) != 1 || w.lease().OwnerReferences[0].Name != node.Name) {
				t.Errorf("owners of the lease = %v, want the Node", w.lease().OwnerReferences)
			}
		})
	}
}

func heldForGood() *coordinationv1.Lease {
	lease := kwokLease()
	holdForGood(lease, microTime(epoch.Add(time.Minute)))
	return lease
}

// TestCrashAtEveryWrite runs a life that crashes once, before or after each of its writes, and expects the same end.
func TestCrashAtEveryWrite(t *testing.T) {
	type end struct {
		Joined, Dead map[string]any
	}
	live := func(t *testing.T, nodeReady bool, crash func(*testCluster)) (end, int) {
		w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())
		w.nodeReady = nodeReady
		crash(w)
		var result end
		w.settle()
		w.settleAfter(2 * time.Second)
		w.settleAfter(time.Second)
		w.settleAfter(time.Hour)
		machine := w.machine()
		machine.ResourceVersion = ""
		node := w.node()
		node.ResourceVersion = ""
		result.Joined = map[string]any{"machine": machine, "node": node}
		w.deleteMachine()
		w.settle()
		w.settleAfter(time.Hour)
		dead := w.node()
		dead.ResourceVersion = ""
		result.Dead = map[string]any{"machine": w.machine(), "node": dead}
		if lease := w.lease(); lease != nil {
			result.Dead["lease"] = lease.Spec
		}
		return result, w.writes
	}
	for _, nodeReady := range []bool{false, true} {
		want, writes := live(t, nodeReady, func(*testCluster) {})
		if writes < 8 {
			t.Errorf("only %d writes", writes)
		}
		for i := 1; i <= writes; i++ {
			for name, crash := range map[string]func(*testCluster){
				"before": func(w *testCluster) { w.crashBefore = i },
				"after":  func(w *testCluster) { w.crashAfter = i },
			} {
				t.Run(fmt.Sprintf("%s write %d, node ready %t", name, i, nodeReady), func(t *testing.T) {
					got, _ := live(t, nodeReady, crash)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("end (-without a crash +with it):\n%s", diff)
					}
				})
			}
		}
	}
}
