// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/controlplane/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

const (
	namespace   = "default"
	machineName = "w-1"
	machineUID  = "7ebcadff-7fde-4047-b2f4-cb2453cc843e"
	providerID  = "sim://default/w-1/" + machineUID
)

var errCrash = errors.New("crash")

// testCluster is a management and a workload cluster with one machine, and a clock that only the test advances.
type testCluster struct {
	t          *testing.T
	ctx        context.Context
	clock      *clocktesting.FakePassiveClock
	management client.WithWatch
	workload   client.WithWatch
	nodeReady  bool
	workloadCA []byte

	// writes counts the writes to both clusters, and made the instances that a pool has created.
	writes, made int
	// crashBefore and crashAfter are the numbers of the writes (from 1) that fail: the first is not applied, the second
	// is.
	crashBefore, crashAfter int
}

func newWorld(t *testing.T, objects ...client.Object) *testCluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(AddToScheme(scheme), corev1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &testCluster{t: t, ctx: t.Context(), clock: clocktesting.NewFakePassiveClock(epoch)}
	// Nothing here uses server-side apply, and the converter that the builder creates for it takes most of the time of
	// a test.
	converter := managedfields.NewDeducedTypeConverter()
	w.management = fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(converter).WithObjects(objects...).
		WithStatusSubresource(&infrav1.SimulatedMachine{}, &infrav1.SimulatedCluster{}, &infrav1.SimulatedMachineTemplate{},
			&infrav1.SimulatedMachinePool{}, &infrav1.SimulatedRemediation{},
			&controlplanev1.SimulatedControlPlane{}, &bootstrapv1.SimulatedConfig{}, &clusterv1.Cluster{}, &clusterv1.Machine{}).Build()
	w.workload = fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(converter).WithStatusSubresource(&corev1.Node{}).Build()
	return w
}

// counted returns a client whose writes are counted and can crash.
func (w *testCluster) counted(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, ok := obj.(*infrav1.SimulatedMachine); ok {
				// As an API server does; much depends on this UID.
				w.made++
				obj.SetUID(types.UID(fmt.Sprintf("instance-%d", w.made)))
			}
			return w.write(func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return w.write(func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return w.write(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return w.write(func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.write(func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
}

func (w *testCluster) write(apply func() error) error {
	w.writes++
	if w.writes == w.crashBefore {
		return errCrash
	}
	err := apply()
	if w.writes == w.crashAfter {
		return errors.Join(err, errCrash)
	}
	return err
}

// reconcileOnce reconciles the machine with a reconciler that has just started.
func (w *testCluster) reconcileOnce() (ctrl.Result, error) { return w.reconcileMachine(machineName) }

func (w *testCluster) reconcileMachine(name string) (ctrl.Result, error) {
	r := &machineReconciler{
		Client: w.counted(w.management), live: w.management, workload: w.counted(w.workload),
		clock: w.clock, nodeReady: w.nodeReady, workloadCA: w.workloadCA,
	}
	return r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
}

// settle reconciles as the events of the writes do, until nothing is left to write, and returns when to reconcile next.
func (w *testCluster) settle() time.Duration {
	w.t.Helper()
	for range 20 {
		before := w.writes
		result, err := w.reconcileOnce()
		if err != nil && !errors.Is(err, errCrash) {
			w.t.Fatalf("reconcile: %v", err)
		}
		if err == nil && w.writes == before {
			return result.RequeueAfter
		}
	}
	w.t.Fatal("the machine does not settle")
	return 0
}

// settleAfter advances the clock and settles.
func (w *testCluster) settleAfter(d time.Duration) time.Duration {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(d))
	return w.settle()
}

// machine returns the SimulatedMachine; nil if it no longer exists.
func (w *testCluster) machine() *infrav1.SimulatedMachine {
	w.t.Helper()
	machine := &infrav1.SimulatedMachine{}
	return get(w, w.management, machine, namespace, machineName)
}

// node returns the Node; nil if there is none.
func (w *testCluster) node() *corev1.Node {
	w.t.Helper()
	return get(w, w.workload, &corev1.Node{}, "", machineName)
}

// lease returns the Node's lease; nil if there is none.
func (w *testCluster) lease() *coordinationv1.Lease {
	w.t.Helper()
	return get(w, w.workload, &coordinationv1.Lease{}, corev1.NamespaceNodeLease, machineName)
}

func get[T client.Object](w *testCluster, c client.Client, obj T, namespace, name string) T {
	w.t.Helper()
	err := c.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		var none T
		return none
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return obj
}

// update changes an object of the management cluster, as another client does.
func (w *testCluster) update(obj client.Object, change func()) {
	w.t.Helper()
	if err := w.management.Get(w.ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		w.t.Fatal(err)
	}
	change()
	if err := w.management.Update(w.ctx, obj); err != nil {
		w.t.Fatal(err)
	}
}

func (w *testCluster) deleteMachine() {
	w.t.Helper()
	if err := w.management.Delete(w.ctx, w.machine()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *testCluster) wantReady(status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	w.wantCondition(clusterv1.ReadyCondition, status, reason)
}

func (w *testCluster) wantCondition(kind string, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	machine := w.machine()
	if machine == nil {
		w.t.Fatal("the machine no longer exists")
	}
	condition := meta.FindStatusCondition(machine.Status.Conditions, kind)
	if condition == nil {
		w.t.Errorf("%s is not set, want %s, %s", kind, status, reason)
		return
	}
	if condition.Status != status || condition.Reason != reason {
		w.t.Errorf("%s = %s, %s (%s), want %s, %s", kind, condition.Status, condition.Reason, condition.Message, status, reason)
	}
}

// cluster, ownerMachine and simulatedMachine are as Cluster API leaves them when all prerequisites are met.

func cluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
		Status: clusterv1.ClusterStatus{
			Initialization: clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true)},
		},
	}
}

func ownerMachine() *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machineName, UID: "owner"},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Version: "v1.36.3", FailureDomain: "zone-b",
			Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("none")},
		},
	}
}

func simulatedMachine() *infrav1.SimulatedMachine {
	return &infrav1.SimulatedMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: machineName, UID: machineUID,
			Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: machineName, UID: "owner", Controller: ptr.To(true),
			}},
		},
		Spec: infrav1.SimulatedMachineSpec{
			Capacity: resources("cpu", "2"),
			Zone:     "zone-a",
			Delays: infrav1.Delays{
				ProviderID:   delay(2 * time.Second),
				Provisioning: delay(3 * time.Second),
				NodeJoin:     delay(4 * time.Second),
				Termination:  delay(5 * time.Second),
			},
		},
	}
}
