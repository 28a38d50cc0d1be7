// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/controller"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// Each of these feature gates of Karpenter works, with all of them enabled.
func TestFeatureGates(t *testing.T) {
	t.Parallel()
	ctx, s := newStack(t, stack.Options{OperatorArgs: []string{"--feature-gates=" + stack.FeatureGates, "--log-level=debug"}})
	g := NewWithT(t)
	create(ctx, g, s, kinds.MachineDeployment, "gates.yaml")

	// First and without any Pod, since each pending Pod causes a scheduling pass, which counts the buffer's Pods again.
	t.Run("CapacityBuffer", func(t *testing.T) { keepsBuffers(ctx, NewWithT(t), s) })

	// The others run together and are checked in sequence.
	expectReplicas(ctx, g, s, 2)
	static := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "static"}}
	g.Expect(s.Workload.Patch(ctx, static, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`)))).To(Succeed())
	for _, app := range []gateApp{
		{pool: "overlaid", cpu: "1", replicas: 1},
		{pool: "reserved", cpu: "1500m", replicas: 2},
		{pool: "spot", name: "leaves", cpu: "3", replicas: 1},
		{pool: "spot", name: "stays", cpu: "500m", replicas: 1},
		{pool: "repaired", cpu: "1", replicas: 1},
	} {
		g.Expect(s.Workload.Create(ctx, app.deployment())).To(Succeed())
	}
	t.Run("NodeRepair", func(t *testing.T) { recognizesUnhealthy(ctx, NewWithT(t), s) })
	t.Run("SpotToSpotConsolidation", func(t *testing.T) { replacesSpotBySpot(ctx, NewWithT(t), s) })
	t.Run("StaticCapacity", func(t *testing.T) { expectReplicas(ctx, NewWithT(t), s, 1) })
	t.Run("NodeOverlay", func(t *testing.T) { followsOverlay(ctx, NewWithT(t), s) })
	t.Run("ReservedCapacity", func(t *testing.T) { usesReservation(ctx, NewWithT(t), s) })
}

// keepsBuffers expects Karpenter to find the Node of a CapacityBuffer empty of Pods and to keep it, although its Pods were
// counted while its NodeClaim had the provisional provider ID.
func keepsBuffers(ctx context.Context, g *WithT, s *stack.Stack) {
	create(ctx, g, s, kinds.MachineDeployment, "buffer.yaml")
	var first string
	g.Eventually(ctx, func(g Gomega) {
		claims := claimsOf(ctx, g, s, "buffered")
		g.Expect(claims).To(HaveLen(1))
		first = claims[0].Name
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	g.Eventually(ctx, func(g Gomega) {
		claims := claimsOf(ctx, g, s, "buffered")
		if len(claims) != 1 || claims[0].Name != first || !claims[0].DeletionTimestamp.IsZero() {
			StopTrying(fmt.Sprintf("NodeClaim %s, which hosts the buffer, is replaced or deleted: %v", first, names(claims))).Now()
		}
		published := &corev1.EventList{}
		g.Expect(s.Workload.List(ctx, published, client.MatchingFields{"involvedObject.name": first, "reason": events.Unconsolidatable})).To(Succeed())
		g.Expect(published.Items).To(ContainElement(HaveField("Message", ContainSubstring("has buffer pods"))))
	}).WithTimeout(2*time.Minute).WithPolling(poll).Should(Succeed(), "an emptiness pass considers the Node and keeps it")
}

// expectReplicas expects the static NodePool to have as many Nodes as replicas, without Pods.
func expectReplicas(ctx context.Context, g *WithT, s *stack.Stack, want int) {
	g.Eventually(ctx, func(g Gomega) {
		g.Expect(claimsOf(ctx, g, s, "static")).To(HaveLen(want), "NodeClaims")
		g.Expect(nodesOf(ctx, g, s, "static")).To(HaveLen(want), "Nodes")
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
}

// recognizesUnhealthy expects Karpenter to match a Node that is not Ready to the policy that replaces it. It does so
// once the Node has been unhealthy for 30 minutes, for which the integration tests have their own clock.
func recognizesUnhealthy(ctx context.Context, g *WithT, s *stack.Stack) {
	node := nodeRunning(ctx, g, s, "repaired")
	g.Eventually(ctx, func() error { return controller.StopHeartbeat(ctx, s.Workload, node, metav1.NowMicro()) }).
		WithTimeout(time.Minute).WithPolling(poll).Should(Succeed(), "a concurrent renewal by the kubelet wins")
	unready := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady"}]}}`))
	g.Expect(s.Workload.Status().Patch(ctx, node, unready)).To(Succeed())

	g.Eventually(ctx, func() (string, error) {
		log, err := os.ReadFile(filepath.Join(s.LogDir(), stack.Operator+".log"))
		return string(log), err
	}).WithTimeout(time.Minute).WithPolling(poll).Should(MatchRegexp(
		`"matched repair policy".*%q.*"reason":"KubeletNotReady".*"action":"ReplaceNode"`, node.Name))
}

// replacesSpotBySpot expects Karpenter to replace a spot Node that has become too large with a cheaper spot Node.
func replacesSpotBySpot(ctx context.Context, g *WithT, s *stack.Stack) {
	g.Expect(nodeRunning(ctx, g, s, "stays")).To(HaveField("Labels", HaveKeyWithValue(corev1.LabelInstanceTypeStable, "large")))
	g.Expect(s.Workload.Delete(ctx, gateApp{pool: "spot", name: "leaves"}.deployment(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	g.Eventually(ctx, func(g Gomega) {
		nodes := nodesOf(ctx, g, s, "spot")
		g.Expect(nodes).To(HaveLen(1))
		g.Expect(nodes[0].Labels).To(And(
			HaveKeyWithValue(corev1.LabelInstanceTypeStable, HavePrefix("spot-")),
			HaveKeyWithValue(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeSpot),
		))
		running, err := runningPods(ctx, s, "stays")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(running).To(Equal(1), "Pods")
	}).WithTimeout(3*time.Minute).WithPolling(poll).Should(Succeed(), "a smaller spot Node, and the Pod on it")
}

// followsOverlay expects the Node to have the type that is the cheapest only because of the NodeOverlay.
func followsOverlay(ctx context.Context, g *WithT, s *stack.Stack) {
	g.Expect(nodeRunning(ctx, g, s, "overlaid")).To(HaveField("Labels", HaveKeyWithValue(corev1.LabelInstanceTypeStable, "medium")))
}

// usesReservation expects one Node from the reservation, which has room for one, although it is the most expensive
// offering, and another Node on demand.
func usesReservation(ctx context.Context, g *WithT, s *stack.Stack) {
	g.Eventually(ctx, func() (int, error) { return runningPods(ctx, s, "reserved") }).
		WithTimeout(time.Minute).WithPolling(poll).Should(Equal(2), "Pods")
	var found []string
	for _, node := range nodesOf(ctx, g, s, "reserved") {
		found = append(found, node.Labels[karpv1.CapacityTypeLabelKey]+" "+node.Labels[v1alpha1.ReservationIDLabel])
	}
	g.Expect(found).To(ConsistOf("reserved bought", "on-demand "), "capacity type and reservation of the Nodes")
}

// gateApp is a Deployment whose Pods run on Nodes of one NodePool. Its default name is that of the NodePool.
type gateApp struct {
	pool, name, cpu string
	replicas        int32
}

func (a gateApp) deployment() *appsv1.Deployment {
	name := a.name
	if name == "" {
		name = a.pool
	}
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &a.replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](1),
					NodeSelector:                  map[string]string{karpv1.NodePoolLabelKey: a.pool},
					Containers:                    []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.10"}},
				},
			},
		},
	}
	if a.cpu != "" {
		deployment.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(a.cpu)}
	}
	return deployment
}

// nodeRunning waits until an app's Pod runs, and returns its Node.
func nodeRunning(ctx context.Context, g *WithT, s *stack.Stack, app string) *corev1.Node {
	node := &corev1.Node{}
	g.Eventually(ctx, func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(s.Workload.List(ctx, pods, client.MatchingLabels{"app": app})).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(1))
		g.Expect(pods.Items[0].Status.Phase).To(Equal(corev1.PodRunning))
		g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: pods.Items[0].Spec.NodeName}, node)).To(Succeed())
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed(), "the Pod of %s runs", app)
	return node
}

func claimsOf(ctx context.Context, g Gomega, s *stack.Stack, pool string) []karpv1.NodeClaim {
	claims := &karpv1.NodeClaimList{}
	g.Expect(s.Workload.List(ctx, claims, client.MatchingLabels{karpv1.NodePoolLabelKey: pool})).To(Succeed())
	return claims.Items
}

func nodesOf(ctx context.Context, g Gomega, s *stack.Stack, pool string) []corev1.Node {
	nodes := &corev1.NodeList{}
	g.Expect(s.Workload.List(ctx, nodes, client.MatchingLabels{karpv1.NodePoolLabelKey: pool})).To(Succeed())
	return nodes.Items
}

func names(claims []karpv1.NodeClaim) []string {
	var names []string
	for i := range claims {
		names = append(names, claims[i].Name)
	}
	return names
}
