// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

const (
	volumeDriver = "csi.example.com"
	// attachable is how many volumes the driver reports for each Node.
	attachable = 25
	volumePods = 60
)

// Pods with a volume each get as many Nodes as their volumes need, at once: Karpenter knows the limit from the catalog, or
// from the CSINode of a Node that exists.
func TestVolumes(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{})
	g := NewWithT(t)
	attach(ctx, t, s)
	create(ctx, g, s, kinds.MachineDeployment, "volumes.yaml")

	scaleSetAtOnce(ctx, g, s, "declared")
	expectVolumeNodes(ctx, g, s, "declared", 0)

	scaleSet(ctx, g, s, "learned", 1)
	g.Eventually(ctx, func(g Gomega) {
		template := &v1alpha1.KarpenterMachineTemplate{}
		g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: "volumes"}, template)).To(Succeed())
		learned, _ := lo.Find(template.Status.ObservedCapacity, func(o v1alpha1.ObservedCapacity) bool { return o.InstanceType == "learned" })
		g.Expect(learned.VolumeAttachmentLimits).To(Equal(map[string]int32{volumeDriver: attachable}))
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	scaleSetAtOnce(ctx, g, s, "learned")
	expectVolumeNodes(ctx, g, s, "learned", 1)

	g.Expect(s.Workload.DeleteAllOf(ctx, &appsv1.StatefulSet{}, client.InNamespace(corev1.NamespaceDefault), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	removeAll(ctx, g, s)
}

// attach does what a CSI driver does: it reports on each Node how many volumes can be attached, and creates the volumes of
// Pods whose Node is known.
func attach(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	try := func(object client.Object) {
		if err := s.Workload.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
			t.Errorf("creating %T %s: %v", object, object.GetName(), err)
		}
	}
	see := func(object any) {
		switch object := object.(type) {
		case *corev1.Node:
			try(csiNodeOf(object))
		case *corev1.PersistentVolumeClaim:
			if _, chosen := object.Annotations["volume.kubernetes.io/selected-node"]; chosen && object.Spec.VolumeName == "" {
				try(volumeOf(object))
			}
		}
	}
	handleChanges(ctx, t, s.Kubeconfig(), toolscache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, object any) { see(object) },
	}, &corev1.Node{}, &corev1.PersistentVolumeClaim{})
}

func csiNodeOf(node *corev1.Node) *storagev1.CSINode {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	csiNode := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name, OwnerReferences: []metav1.OwnerReference{owner}}}
	csiNode.Spec.Drivers = []storagev1.CSINodeDriver{{Name: volumeDriver, NodeID: node.Name, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(attachable))}}}
	return csiNode
}

func volumeOf(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + string(claim.UID)}}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume.Spec.AccessModes, volume.Spec.StorageClassName = claim.Spec.AccessModes, *claim.Spec.StorageClassName
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: volumeDriver, VolumeHandle: string(claim.UID)}
	volume.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	return volume
}

func scaleSet(ctx context.Context, g *WithT, s *stack.Stack, name string, replicas int32) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: name}}
	patch := client.MergeFrom(set.DeepCopy())
	set.Spec.Replicas = &replicas
	g.Expect(s.Workload.Patch(ctx, set, patch)).To(Succeed())
}

// scaleSetAtOnce creates Pods for which Karpenter plans at the same time. On a busy machine, a StatefulSet needs longer for them
// than Karpenter waits for more Pods, and so does kube-scheduler. So the NodePool allows no Node until all Pods exist and
// kube-scheduler has tried each: until then, Karpenter plans other Pods for what is free on a Node than kube-scheduler puts there.
func scaleSetAtOnce(ctx context.Context, g *WithT, s *stack.Stack, name string) {
	limit := func(limits string) {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "volumes"}}
		g.Expect(s.Workload.Patch(ctx, pool, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"limits":%s}}`, limits)))).To(Succeed())
	}
	limit(`{"cpu":"0"}`)
	scaleSet(ctx, g, s, name, volumePods)
	g.Eventually(ctx, func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(s.Workload.List(ctx, pods, client.InNamespace(corev1.NamespaceDefault), client.MatchingLabels{"app": name})).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(volumePods))
		g.Expect(pods.Items).To(HaveEach(HaveField("Status.Conditions", ContainElement(HaveField("Type", corev1.PodScheduled)))), "Pods that kube-scheduler has tried")
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	limit("null")
}

// expectVolumeNodes waits until all Pods of a StatefulSet run, and expects the fewest Nodes on which their volumes fit. All
// NodeClaims but the given number of older ones were there before one of them had a Node, so none was created for a Pod that
// fitted nowhere.
func expectVolumeNodes(ctx context.Context, g *WithT, s *stack.Stack, name string, older int) {
	g.Eventually(ctx, func() (int, error) { return runningPods(ctx, s, name) }).
		WithTimeout(3*time.Minute).WithPolling(poll).Should(Equal(volumePods), "Pods that run")
	ofType := client.MatchingLabels{corev1.LabelInstanceTypeStable: name}
	claims, nodes := &karpv1.NodeClaimList{}, &corev1.NodeList{}
	g.Expect(s.Workload.List(ctx, claims, ofType)).To(Succeed())
	g.Expect(s.Workload.List(ctx, nodes, ofType)).To(Succeed())
	const fewest = (volumePods + attachable - 1) / attachable
	g.Expect(claims.Items).To(HaveLen(fewest))
	g.Expect(nodes.Items).To(HaveLen(fewest))
	created := lo.Map(claims.Items, func(claim karpv1.NodeClaim, _ int) time.Time { return claim.CreationTimestamp.Time })
	joined := lo.Map(nodes.Items, func(node corev1.Node, _ int) time.Time { return node.CreationTimestamp.Time })
	slices.SortFunc(created, time.Time.Compare)
	slices.SortFunc(joined, time.Time.Compare)
	g.Expect(created[fewest-1]).To(BeTemporally("<=", joined[older]), "the last NodeClaim, and the first of the new Nodes")
}
