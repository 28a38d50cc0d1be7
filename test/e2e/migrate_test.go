// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	asking "github.com/karpenter-capi/karpenter-capi/test/harness/ask"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// The plan of a migration from cluster-autoscaler works as it is printed: its commands, run one after the other, let Karpenter
// add Machines to a MachineDeployment, and its way back leaves the two Machines that it had before.
func TestMigrate(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{Kubeadm: true})
	g := NewWithT(t)
	create(ctx, g, s, kinds.MachineDeployment, "migrate.yaml")
	m := &migration{s: s, steps: openGuide(t, s, "first-node.md")}
	m.awaitMachines(ctx, g, 2)
	_, before := m.machines(ctx, g)

	plan, _ := m.ask(ctx, g, "migrate", "cluster-autoscaler")
	forward, back, found := strings.Cut(plan, "# The way back:")
	g.Expect(found).To(BeTrue(), plan)
	m.run(ctx, t, g, forward, "kubectl annotate", "kubectl label")
	_, applied := m.ask(ctx, g, "migrate", "cluster-autoscaler", "--apply")
	g.Expect(applied).To(ContainSubstring("KarpenterMachineTemplate adopted applied"))
	m.run(ctx, t, g, forward, "kubectl karpenter-capi offerings")

	// One Pod fills one machine, and nothing else runs on the two that exist. So two more are needed.
	g.Expect(s.Workload.Create(ctx, fillers(4))).To(Succeed())
	m.awaitMachines(ctx, g, 4)
	g.Eventually(ctx, func(g Gomega) {
		running, err := runningPods(ctx, s, "migrate")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(running).To(Equal(4))
	}).WithTimeout(2 * time.Minute).WithPolling(poll).Should(Succeed())
	_, now := m.machines(ctx, g)
	g.Expect(now).To(ContainElements(before), "the Machines that existed before")
	claims := &karpv1.NodeClaimList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	g.Expect(claims.Items).To(HaveLen(2))

	m.run(ctx, t, g, back, "kubectl annotate", "kubectl delete nodepool")
	g.Eventually(ctx, func(g Gomega) {
		deployment := &clusterv1.MachineDeployment{}
		g.Expect(s.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: "workers-a"}, deployment)).To(Succeed())
		g.Expect(deployment.Annotations).NotTo(HaveKey(v1alpha1.AdoptedAnnotation))
		g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	}).WithTimeout(2 * time.Minute).WithPolling(poll).Should(Succeed())
	m.awaitMachines(ctx, g, 2)
	_, now = m.machines(ctx, g)
	g.Expect(now).To(ConsistOf(before), "the Machines that existed before")
}

// migration runs the steps of a plan on a stack.
type migration struct {
	s     *stack.Stack
	steps *guide
}

// ask runs a command of the plugin, and returns what it prints to both outputs.
func (m *migration) ask(ctx context.Context, g *WithT, arguments ...string) (out, messages string) {
	out, messages, err := asking.Run(ctx, m.s, arguments...)
	g.Expect(err).NotTo(HaveOccurred())
	return out, messages
}

// run runs those commands of a part of a plan that begin with one of the given words, each in its cluster.
func (m *migration) run(ctx context.Context, t *testing.T, g *WithT, part string, beginnings ...string) {
	t.Helper()
	count := 0
	for line := range strings.SplitSeq(part, "\n") {
		command := strings.TrimSpace(strings.TrimPrefix(line, "#"))
		if !lo.SomeBy(beginnings, func(beginning string) bool { return strings.HasPrefix(command, beginning) }) {
			continue
		}
		count++
		if rest, ofPlugin := strings.CutPrefix(command, "kubectl karpenter-capi "); ofPlugin {
			printed, _ := m.ask(ctx, g, strings.Fields(rest)...)
			t.Logf("$ %s\n%s", command, printed)
			continue
		}
		command += lo.Ternary(strings.Contains(command, "machinedeployment"), ` --kubeconfig "$MANAGEMENT"`, ` --kubeconfig "$WORKLOAD"`)
		printed, err := m.steps.command(ctx, command)
		t.Logf("$ %s\n%s", command, printed)
		g.Expect(err).NotTo(HaveOccurred(), printed)
	}
	g.Expect(count).NotTo(BeZero(), "commands that begin with %v in\n%s", beginnings, part)
}

// machines returns the Machines of the MachineDeployment, and their UIDs.
func (m *migration) machines(ctx context.Context, g Gomega) ([]clusterv1.Machine, []types.UID) {
	machines := &clusterv1.MachineList{}
	g.Expect(m.s.Management.List(ctx, machines, client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: "workers-a"})).To(Succeed())
	return machines.Items, lo.Map(machines.Items, func(machine clusterv1.Machine, _ int) types.UID { return machine.UID })
}

// awaitMachines waits until there are so many Machines, each with a Node that is ready.
func (m *migration) awaitMachines(ctx context.Context, g *WithT, count int) {
	g.Eventually(ctx, func(g Gomega) {
		machines, _ := m.machines(ctx, g)
		g.Expect(machines).To(HaveLen(count))
		for i := range machines {
			g.Expect(machines[i].Status.NodeRef.IsDefined()).To(BeTrue(), "Machine %s has no Node", machines[i].Name)
		}
	}).WithTimeout(3 * time.Minute).WithPolling(poll).Should(Succeed())
}

// fillers returns a Deployment of so many Pods, each of which fills a machine.
func fillers(count int32) *appsv1.Deployment {
	labels := map[string]string{"app": "migrate"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: "migrate"}}
	deployment.Spec.Replicas, deployment.Spec.Selector = &count, &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(1))
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
	}}}
	return deployment
}
