// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

const deviceDriver = "gpu.example.com"

// Pods with ResourceClaims get Nodes whose devices serve them: Karpenter knows the devices from the catalog, or from the
// ResourceSlices of a Node that exists. kube-scheduler then allocates the devices that the driver publishes.
func TestDevices(t *testing.T) {
	t.Parallel()
	ctx, s := newStack(t, stack.Options{OperatorArgs: []string{"--ignore-dra-requests=false"}})
	g := NewWithT(t)
	publishDevices(ctx, t, s)
	create(ctx, g, s, kinds.MachineDeployment, "devices.yaml")
	for _, app := range []string{"single", "pair", "part", "surprise", "none"} {
		g.Expect(s.Workload.Create(ctx, deviceApp(app, app))).To(Succeed())
	}
	plain := deviceApp("plain", "")
	plain.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: "learned"}
	g.Expect(s.Workload.Create(ctx, plain)).To(Succeed())

	// Nothing has the device, so nothing is launched for the Pod.
	scalePods(ctx, g, s, "none", 1)
	expectRefusal(ctx, g, s, "none", "no instance type can satisfy the allocation")

	// One GPU, of the only model that the claim accepts.
	scalePods(ctx, g, s, "single", 1)
	expectDeviceNodes(ctx, g, s, "single", 1, map[string]int{"single": 1})

	// Two GPUs on one board. The cheaper type has as many, but each on another board.
	scalePods(ctx, g, s, "pair", 2)
	expectDeviceNodes(ctx, g, s, "pair", 2, map[string]int{"single": 1, "pair": 1})

	// Halves of a GPU: each Node has two.
	parts := 0
	if servesCounters(ctx, g, s) {
		parts = 2
		scalePods(ctx, g, s, "part", 3)
		expectDeviceNodes(ctx, g, s, "part", 3, map[string]int{"single": 1, "pair": 1, "parts": parts})
	}

	// The catalog has no devices of this type. Its first Node shows them.
	expected := lo.PickBy(map[string]int{"single": 1, "pair": 1, "parts": parts, "learned": 1}, func(_ string, nodes int) bool { return nodes > 0 })
	scalePods(ctx, g, s, "plain", 1)
	expectDeviceNodes(ctx, g, s, "plain", 1, expected)
	g.Eventually(ctx, func(g Gomega) {
		template := &v1alpha1.KarpenterMachineTemplate{}
		g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: "devices"}, template)).To(Succeed())
		learned, _ := lo.Find(template.Status.ObservedDevices, func(o v1alpha1.ObservedDevices) bool { return o.InstanceType == "learned" })
		g.Expect(learned.Devices).To(HaveLen(1))
		g.Expect(learned.Devices[0].Attributes).To(HaveKeyWithValue("model", v1alpha1.DeviceAttribute{String: new("surprise")}))
		g.Expect(template.StatusConditions().Get(v1alpha1.ConditionCapacityAccurate).IsTrue()).To(BeTrue())
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	scalePods(ctx, g, s, "surprise", 2)
	expected["learned"] = 2
	expectDeviceNodes(ctx, g, s, "surprise", 2, expected)

	removeAll(ctx, g, s)
}

// publishDevices does what a DRA driver does: it publishes the devices of each Node that joins.
func publishDevices(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	done := map[string]bool{}
	see := func(object any) {
		node, is := object.(*corev1.Node)
		if !is || done[node.Name] || node.Labels[corev1.LabelInstanceTypeStable] == "" {
			return
		}
		done[node.Name] = true
		for _, slice := range slicesOf(node) {
			if err := s.Workload.Create(ctx, slice); err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
				t.Errorf("creating ResourceSlice %s: %v", slice.Name, err)
			}
		}
	}
	handleChanges(ctx, t, s.Kubeconfig(), toolscache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, object any) { see(object) },
	}, &corev1.Node{})
}

// slicesOf returns what the driver publishes for a Node, by its instance type.
func slicesOf(node *corev1.Node) []*resourcev1.ResourceSlice {
	var devices []resourcev1.Device
	var counters []resourcev1.CounterSet
	switch node.Labels[corev1.LabelInstanceTypeStable] {
	case "single":
		devices = []resourcev1.Device{deviceOf(node, "gpu-0", "small", "whole", "a")}
	case "split":
		devices = []resourcev1.Device{deviceOf(node, "gpu-0", "large", "whole", "a"), deviceOf(node, "gpu-1", "large", "whole", "b")}
	case "pair":
		devices = []resourcev1.Device{
			deviceOf(node, "gpu-0", "large", "whole", "a"), deviceOf(node, "gpu-1", "large", "whole", "a"),
			deviceOf(node, "gpu-2", "large", "whole", "b"), deviceOf(node, "gpu-3", "large", "whole", "b"),
		}
	case "parts":
		devices = []resourcev1.Device{deviceOf(node, "gpu-0", "parts", "whole", "a"), deviceOf(node, "half-0", "parts", "half", "a"), deviceOf(node, "half-1", "parts", "half", "a")}
		for i, slices := range []string{"2", "1", "1"} {
			devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-0", Counters: sliceCounter(slices)}}
		}
		counters = []resourcev1.CounterSet{{Name: "gpu-0", Counters: sliceCounter("2")}}
	case "learned":
		devices = []resourcev1.Device{deviceOf(node, "gpu-0", "surprise", "whole", "a")}
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	newSlice := func(name string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name + "-" + name, OwnerReferences: []metav1.OwnerReference{owner}},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: deviceDriver, NodeName: &node.Name,
				Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: int64(1 + min(1, len(counters)))},
			},
		}
	}
	published := []*resourcev1.ResourceSlice{newSlice("devices")}
	published[0].Spec.Devices = devices
	if len(counters) > 0 {
		published = append(published, newSlice("counters"))
		published[1].Spec.SharedCounters = counters
	}
	return published
}

// deviceOf returns a device of a Node. Only the Node knows which devices are on one board.
func deviceOf(node *corev1.Node, name, model, kind, board string) resourcev1.Device {
	return resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"model": {StringValue: &model}, "kind": {StringValue: &kind}, "board": {StringValue: new(string(node.UID) + board)},
	}}
}

func sliceCounter(slices string) map[string]resourcev1.Counter {
	return map[string]resourcev1.Counter{"slices": {Value: resource.MustParse(slices)}}
}

// servesCounters reports whether the API server has counters in ResourceSlices, as that of Kubernetes 1.36 and later has.
func servesCounters(ctx context.Context, g *WithT, s *stack.Stack) bool {
	probe := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "probe.example.com", NodeName: new("none"), Pool: resourcev1.ResourcePool{Name: "none", Generation: 1, ResourceSliceCount: 1},
		SharedCounters: []resourcev1.CounterSet{{Name: "gpu", Counters: sliceCounter("1")}},
	}}
	g.Expect(s.Workload.Create(ctx, probe)).To(Succeed())
	g.Expect(s.Workload.Delete(ctx, probe)).To(Succeed())
	return len(probe.Spec.SharedCounters) > 0
}

// deviceApp returns a Deployment without Pods, whose Pods have a claim of a ResourceClaimTemplate, or none if that is empty.
func deviceApp(name, claimTemplate string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	app := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: name}}
	app.Spec.Replicas, app.Spec.Selector, app.Spec.Template.Labels = new(int32(0)), &metav1.LabelSelector{MatchLabels: labels}, labels
	container := corev1.Container{Name: "app", Image: "registry.k8s.io/pause:3.10"}
	container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	pod := &app.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = new(int64(1))
	if claimTemplate != "" {
		pod.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: &claimTemplate}}
		container.Resources.Claims = []corev1.ResourceClaim{{Name: "gpus"}}
	}
	pod.Containers = []corev1.Container{container}
	return app
}

// expectDeviceNodes waits until the Pods of an app run, and expects the numbers of Nodes by their instance types.
func expectDeviceNodes(ctx context.Context, g *WithT, s *stack.Stack, app string, pods int, want map[string]int) {
	g.Eventually(ctx, func() (int, error) { return runningPods(ctx, s, app) }).
		WithTimeout(3*time.Minute).WithPolling(poll).Should(Equal(pods), "Pods of "+app+" that run")
	got := lo.CountValuesBy(nodesOf(ctx, g, s, "devices"), func(node corev1.Node) string { return node.Labels[corev1.LabelInstanceTypeStable] })
	g.Expect(got).To(Equal(want), "Nodes when all Pods of "+app+" run")
	g.Expect(claimsOf(ctx, g, s, "devices")).To(HaveLen(lo.Sum(lo.Values(want))))
}

// expectRefusal waits for Karpenter's event that no Node can serve a Pod, and expects that it has launched none.
func expectRefusal(ctx context.Context, g *WithT, s *stack.Stack, app, why string) {
	g.Eventually(ctx, func(g Gomega) {
		pods, published := &corev1.PodList{}, &corev1.EventList{}
		g.Expect(s.Workload.List(ctx, pods, client.InNamespace(corev1.NamespaceDefault), client.MatchingLabels{"app": app})).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(1))
		g.Expect(s.Workload.List(ctx, published, client.MatchingFields{"involvedObject.name": pods.Items[0].Name, "reason": events.FailedScheduling})).To(Succeed())
		g.Expect(published.Items).To(ContainElement(HaveField("Message", ContainSubstring(why))))
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	g.Expect(claimsOf(ctx, g, s, "devices")).To(BeEmpty())
}
