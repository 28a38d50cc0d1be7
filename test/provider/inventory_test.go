// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/offers"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/why"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/vsphere"
)

// poolKey is the pool of addresses.yaml.
var poolKey = client.ObjectKey{Namespace: stack.ClusterNamespace, Name: "workers"}

// gpuType is the instance type of the sample with a GPU, whose offerings are its own.
const gpuType = "vsphere-vm.cpu-12.mem-96gb.os-ubuntu"

// nothingLeft is the message of an offering without a free address.
const nothingLeft = "1 InClusterIPPools with labels network=workers have nothing left"

// runOut expects all offerings without GPUs to be closed while the pool has no address, so that Karpenter launches nothing that
// would wait for one, and to be open as soon as it has one.
func (v *onVSphere) runOut(ctx context.Context, g *WithT) {
	before := v.pool(ctx, g)
	total, _, err := unstructured.NestedStringSlice(before.Object, "spec", "addresses")
	g.Expect(err).NotTo(HaveOccurred())
	v.expectAddresses(ctx, g, len(total)-1)

	v.editCatalog(ctx, g, func(spec *v1alpha1.InstanceTypeCatalogSpec) {
		spec.Offerings[0].CapacityFrom = []v1alpha1.CapacitySource{{
			APIVersion: vsphere.PoolKind.GroupVersion().String(), Kind: vsphere.PoolKind.Kind,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"network": "workers"}},
			Free:     "object.?status.ipAddresses.free.orValue(0)",
		}}
	})
	v.expectLeft(ctx, g, 1)

	v.scale(ctx, g, int32(len(total)))
	v.expectRunning(ctx, g, len(total))
	v.expectLeft(ctx, g, 0)

	v.scale(ctx, g, int32(len(total)+1))
	eventually(ctx, g, func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(v.Workload.List(ctx, pods, client.MatchingLabels{"app": "web"})).To(Succeed())
		waiting, found := lo.Find(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == "" })
		g.Expect(found).To(BeTrue(), "a Pod waits")
		answer := &why.Answer{}
		v.ask(ctx, g, answer, "why", "pod", waiting.Name, "--namespace", waiting.Namespace)
		g.Expect(answer.Cause).To(ContainSubstring(nothingLeft))
		events := &corev1.EventList{}
		g.Expect(v.Workload.List(ctx, events, client.InNamespace(waiting.Namespace), client.MatchingFields{"reason": "FailedScheduling", "involvedObject.name": waiting.Name})).To(Succeed())
		g.Expect(events.Items).To(ContainElement(HaveField("Source.Component", "karpenter")), "Karpenter has tried")
	})
	v.expectRunning(ctx, g, len(total))

	before = v.pool(ctx, g)
	changed := before.DeepCopy()
	g.Expect(unstructured.SetNestedStringSlice(changed.Object, append(total, "10.10.0.99"), "spec", "addresses")).To(Succeed())
	g.Expect(v.Management.Patch(ctx, changed, client.MergeFrom(before))).To(Succeed())
	v.expectRunning(ctx, g, len(total)+1)
	v.expectAddresses(ctx, g, len(total)+1)
}

// expectLeft expects all offerings without GPUs to have as many addresses left, and to be closed if that is none.
func (v *onVSphere) expectLeft(ctx context.Context, g *WithT, left int32) {
	eventually(ctx, g, func(g Gomega) {
		counted := lo.Reject(v.offers(ctx, g), func(o offers.Offer, _ int) bool { return o.InstanceType == gpuType })
		g.Expect(counted).To(HaveLen(18), "six types in three zones")
		for _, offer := range counted {
			g.Expect(offer.Left).To(HaveValue(Equal(left)), "%+v", offer)
			if left == 0 {
				g.Expect(offer.Unavailable).To(Equal(offers.Reason{Kind: offers.Full, Message: nothingLeft}), "%+v", offer)
			}
		}
	})
}

// expectAddresses expects each Machine to have an address of its own from the pool.
func (v *onVSphere) expectAddresses(ctx context.Context, g *WithT, count int) {
	machines := &clusterv1.MachineList{}
	g.Expect(v.Management.List(ctx, machines)).To(Succeed())
	g.Expect(machines.Items).To(HaveLen(count))
	has := lo.FlatMap(machines.Items, func(m clusterv1.Machine, _ int) []string {
		return lo.FilterMap(m.Status.Addresses, func(a clusterv1.MachineAddress, _ int) (string, bool) {
			return a.Address, a.Type == clusterv1.MachineExternalIP
		})
	})
	g.Expect(lo.Uniq(has)).To(ConsistOf(v.addresses(ctx, g)), "the addresses of the Machines")
}

// addresses returns what the pool has given.
func (v *onVSphere) addresses(ctx context.Context, g Gomega) []string {
	list := &ipamv1.IPAddressList{}
	g.Expect(v.Management.List(ctx, list)).To(Succeed())
	return lo.Map(list.Items, func(a ipamv1.IPAddress, _ int) string { return a.Spec.Address })
}

func (v *onVSphere) pool(ctx context.Context, g Gomega) *unstructured.Unstructured {
	pool := &unstructured.Unstructured{}
	pool.SetGroupVersionKind(vsphere.PoolKind)
	g.Expect(v.Management.Get(ctx, poolKey, pool)).To(Succeed())
	return pool
}
