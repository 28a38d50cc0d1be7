// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/controlplane/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// run reconciles an object twice, checks that the second time writes nothing, and reads the object again.
func run(t *testing.T, w *testCluster, r reconcile.Reconciler, obj client.Object, wantWrites int) {
	t.Helper()
	for range 2 {
		if _, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}); err != nil {
			t.Fatal(err)
		}
	}
	if w.writes != wantWrites {
		t.Errorf("%d writes, want %d", w.writes, wantWrites)
	}
	if err := w.management.Get(w.ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
}

func wantCondition(t *testing.T, obj conditioned, kind string, status metav1.ConditionStatus) {
	t.Helper()
	condition := meta.FindStatusCondition(obj.GetConditions(), kind)
	if condition == nil || condition.Status != status {
		t.Errorf("%s = %v, want %s", kind, condition, status)
	}
}

func inCluster(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}
}

func TestSimulatedCluster(t *testing.T) {
	domains := []clusterv1.FailureDomain{{Name: "zone-a"}, {Name: "zone-b", ControlPlane: ptr.To(true)}}
	obj := &infrav1.SimulatedCluster{ObjectMeta: inCluster("c"), Spec: infrav1.SimulatedClusterSpec{FailureDomains: domains}}
	w := newWorld(t, cluster(), obj)
	run(t, w, &clusterReconciler{Client: w.counted(w.management), clock: w.clock}, obj, 1)
	if !ptr.Deref(obj.Status.Initialization.Provisioned, false) {
		t.Error("not provisioned")
	}
	if diff := cmp.Diff(domains, obj.Status.FailureDomains); diff != "" {
		t.Errorf("failure domains (-want +got):\n%s", diff)
	}
	wantCondition(t, obj, clusterv1.ReadyCondition, metav1.ConditionTrue)
}

func TestSimulatedControlPlane(t *testing.T) {
	obj := &controlplanev1.SimulatedControlPlane{ObjectMeta: inCluster("c")}
	w := newWorld(t, cluster(), obj)
	run(t, w, &controlPlaneReconciler{Client: w.counted(w.management), clock: w.clock}, obj, 1)
	if !ptr.Deref(obj.Status.Initialization.ControlPlaneInitialized, false) || !ptr.Deref(obj.Status.ExternalManagedControlPlane, false) {
		t.Errorf("status = %+v, want initialized and externally managed", obj.Status)
	}
	wantCondition(t, obj, clusterv1.AvailableCondition, metav1.ConditionTrue)
}

func TestSimulatedConfig(t *testing.T) {
	obj := &bootstrapv1.SimulatedConfig{ObjectMeta: inCluster("c"), Spec: bootstrapv1.SimulatedConfigSpec{DataSecretName: "bootstrap"}}
	w := newWorld(t, cluster(), obj)
	run(t, w, &configReconciler{Client: w.counted(w.management), clock: w.clock}, obj, 1)
	if !ptr.Deref(obj.Status.Initialization.DataSecretCreated, false) || obj.Status.DataSecretName != "bootstrap" {
		t.Errorf("status = %+v, want the data in the Secret of the spec", obj.Status)
	}
	wantCondition(t, obj, clusterv1.ReadyCondition, metav1.ConditionTrue)
}

// If the version in the status is lower, Cluster API concludes that the control plane is being upgraded.
func TestSimulatedControlPlaneVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		spec controlplanev1.SimulatedControlPlaneSpec
		want string
	}{
		"none":      {},
		"stable":    {spec: controlplanev1.SimulatedControlPlaneSpec{Version: "v1.36.3"}, want: "v1.36.3"},
		"upgrading": {spec: controlplanev1.SimulatedControlPlaneSpec{Version: "v1.36.3", RunningVersion: "v1.35.0"}, want: "v1.35.0"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &controlplanev1.SimulatedControlPlane{ObjectMeta: inCluster("c"), Spec: tc.spec}
			w := newWorld(t, cluster(), obj)
			run(t, w, &controlPlaneReconciler{Client: w.counted(w.management), clock: w.clock}, obj, 1)
			if obj.Status.Version != tc.want {
				t.Errorf("status.version = %q, want %q", obj.Status.Version, tc.want)
			}
		})
	}
}

func TestPausedClusterIsNotProvisioned(t *testing.T) {
	paused := cluster()
	paused.Spec.Paused = ptr.To(true)
	obj := &infrav1.SimulatedCluster{ObjectMeta: inCluster("c")}
	w := newWorld(t, paused, obj)
	run(t, w, &clusterReconciler{Client: w.counted(w.management), clock: w.clock}, obj, 1)
	if obj.Status.Initialization.Provisioned != nil {
		t.Error("a paused cluster was provisioned")
	}
	wantCondition(t, obj, clusterv1.PausedCondition, metav1.ConditionTrue)
}

func TestSimulatedMachineTemplate(t *testing.T) {
	obj := &infrav1.SimulatedMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m-large"}}
	obj.Spec.Template.Spec = infrav1.SimulatedMachineSpec{Capacity: resources("cpu", "2", "memory", "8Gi"), Architecture: "arm64"}
	w := newWorld(t, obj)
	run(t, w, &machineTemplateReconciler{Client: w.counted(w.management)}, obj, 1)
	want := infrav1.SimulatedMachineTemplateStatus{
		Capacity: resources("cpu", "2", "memory", "8Gi"),
		NodeInfo: infrav1.NodeInfo{Architecture: "arm64", OperatingSystem: "linux"},
	}
	if diff := cmp.Diff(want, obj.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestGoneObjectsAreIgnored(t *testing.T) {
	w := newWorld(t)
	request := requestFor(namespace, "gone")[0]
	for name, r := range map[string]reconcile.Reconciler{
		"cluster":       &clusterReconciler{Client: w.management, clock: w.clock},
		"control plane": &controlPlaneReconciler{Client: w.management, clock: w.clock},
		"template":      &machineTemplateReconciler{Client: w.management},
		"machine":       &machineReconciler{Client: w.management, live: w.management, workload: w.workload, clock: w.clock},
	} {
		if _, err := r.Reconcile(w.ctx, request); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
