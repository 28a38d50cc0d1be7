// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/cost"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/tree"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/why"
	asking "github.com/karpenter-capi/karpenter-capi/test/harness/ask"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// For Pods that cannot run for different reasons, the plugin names the cause of each, with two clusters and their kubeconfigs.
// The tree has the path to the Node of the Pod that runs, and its price. A bug report has all of it, and no Secrets.
func TestWhy(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{})
	g := NewWithT(t)
	create(ctx, g, s, kinds.MachineDeployment, "why.yaml")

	in := func(pool string, more ...string) func(*corev1.PodSpec) {
		return selecting(append([]string{karpv1.NodePoolLabelKey, pool}, more...)...)
	}
	pods := map[string]func(*corev1.PodSpec){
		"runs": in("why", corev1.LabelInstanceTypeStable, "runs"),
		"Gated": func(spec *corev1.PodSpec) {
			in("why")(spec)
			spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
		},
		"NotTried": func(spec *corev1.PodSpec) { spec.SchedulerName = "nobody" },
		"TooLarge": func(spec *corev1.PodSpec) {
			in("why")(spec)
			spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100")
		},
		"NoOffering":           in("why", corev1.LabelTopologyZone, "nowhere"),
		"NotTolerated":         in("why-tainted"),
		"OtherLabels":          in("nowhere"),
		"NodePoolLimit":        in("why-limited"),
		"LimitReached":         in("why-full"),
		"TemplateNotReady":     in("why-unready"),
		"OfferingsUnavailable": in("why", corev1.LabelInstanceTypeStable, "fails"),
		"InstanceNotReady":     in("why", corev1.LabelInstanceTypeStable, "starts"),
		"NodeMissing":          in("why", corev1.LabelInstanceTypeStable, "boots"),
	}
	for rule, change := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: strings.ToLower(rule)}}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}}
		pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
		change(&pod.Spec)
		g.Expect(s.Workload.Create(ctx, pod)).To(Succeed())
	}
	for rule := range pods {
		want := lo.Ternary(rule == "runs", "", rule)
		g.Eventually(ctx, func(g Gomega) {
			answer := &why.Answer{}
			g.Expect(ask(ctx, s, answer, "why", "pod", strings.ToLower(rule), "--namespace", "default")).To(Succeed())
			g.Expect(answer.Rule).To(Equal(want), "Pod %s: %s\n%v", strings.ToLower(rule), answer.Cause, answer.Steps)
		}).WithTimeout(2 * time.Minute).WithPolling(2 * time.Second).Should(Succeed())
	}

	pod := &corev1.Pod{}
	g.Expect(s.Workload.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: "runs"}, pod)).To(Succeed())
	var items []*tree.Item
	g.Expect(ask(ctx, s, &items, "tree", "node", pod.Spec.NodeName)).To(Succeed())
	var path []string
	for len(items) > 0 {
		path = append(path, items[0].Kind)
		g.Expect(items[0].Problem).To(BeEmpty(), "%s", items[0])
		items = items[0].Children
	}
	g.Expect(path).To(Equal([]string{"NodePool", "KarpenterMachineTemplate", "NodeClaim", "MachineDeployment", "Machine", "Node"}))

	var costs struct{ Total cost.Row }
	g.Expect(ask(ctx, s, &costs, "cost", "why")).To(Succeed())
	g.Expect(costs.Total.Unpriced).To(BeZero())
	g.Expect(costs.Total.PerHour).To(BeNumerically(">=", 0.1))
	expectBundle(ctx, t, g, s)
	removeAll(ctx, g, s)
}

// ask runs a command of the plugin for the clusters of a stack, and reads its answer.
func ask(ctx context.Context, s *stack.Stack, into any, arguments ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, _, err := asking.Run(ctx, s, append(arguments, "-o", "json")...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}
