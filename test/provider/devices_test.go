// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The device that a Pod needs with devices.yaml, and the instance type that has one. Pods that need none get a cheaper type.
const (
	deviceDriver = "gpu.example.com"
	deviceModel  = "small"
	deviceType   = "vsphere-vm.cpu-8.mem-16gb.os-ubuntu"
)

// allocate expects a Pod with a ResourceClaim to get a virtual machine of the instance type with devices, and its device.
func (v *onVSphere) allocate(ctx context.Context, g *WithT) {
	before := len(v.machines(ctx, g))
	v.setDevices(ctx, g, v1alpha1.Device{Driver: deviceDriver, Attributes: map[string]v1alpha1.DeviceAttribute{"model": {String: new(deviceModel)}}})
	objects := objectsIn(g, "devices.yaml")
	for _, object := range objects {
		g.Expect(v.Workload.Create(ctx, object)).To(Succeed())
	}
	pod := v.newPod(ctx, g, "device")
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("one-gpu")}}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	g.Expect(v.Workload.Create(ctx, pod)).To(Succeed())
	eventually(ctx, g, func(g Gomega) {
		v.publishDevices(ctx, g)
		g.Expect(v.Workload.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
	})
	v.expectRunning(ctx, g, before+1)
	g.Expect(v.claimOf(ctx, g, pod).Labels).To(HaveKeyWithValue(corev1.LabelInstanceTypeStable, deviceType))
	g.Expect(v.machineOf(ctx, g, pod).CPUs).To(BeEquivalentTo(8))
	claims := &resourcev1.ResourceClaimList{}
	g.Expect(v.Workload.List(ctx, claims)).To(Succeed())
	g.Expect(claims.Items).To(HaveLen(1))
	allocation := claims.Items[0].Status.Allocation
	g.Expect(allocation).NotTo(BeNil(), "the ResourceClaim is allocated")
	g.Expect(allocation.Devices.Results).To(HaveExactElements(And(HaveField("Driver", deviceDriver), HaveField("Pool", pod.Spec.NodeName))))

	v.removePods(ctx, g, pod)
	for _, object := range objects {
		g.Expect(v.Workload.Delete(ctx, object)).To(Succeed())
	}
	v.setDevices(ctx, g)
}

// setDevices sets the devices of the instance type.
func (v *onVSphere) setDevices(ctx context.Context, g *WithT, devices ...v1alpha1.Device) {
	v.editCatalog(ctx, g, func(spec *v1alpha1.InstanceTypeCatalogSpec) {
		_, i, found := lo.FindIndexOf(spec.InstanceTypes, func(t v1alpha1.InstanceType) bool { return t.Name == deviceType })
		g.Expect(found).To(BeTrue(), "the catalog has "+deviceType)
		spec.InstanceTypes[i].Devices = devices
	})
	v.expectCatalog(ctx, g)
}

// publishDevices does what a DRA driver does: it publishes the device of each Node of the instance type.
func (v *onVSphere) publishDevices(ctx context.Context, g Gomega) {
	nodes := &corev1.NodeList{}
	g.Expect(v.Workload.List(ctx, nodes, client.MatchingLabels{corev1.LabelInstanceTypeStable: deviceType})).To(Succeed())
	for i := range nodes.Items {
		node := &nodes.Items[i]
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name:            node.Name,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
			},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: deviceDriver, NodeName: &node.Name,
				Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
				Devices: []resourcev1.Device{{Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"model": {StringValue: new(deviceModel)},
				}}},
			},
		}
		g.Expect(client.IgnoreAlreadyExists(v.Workload.Create(ctx, slice))).To(Succeed())
	}
}
