// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// podGC is more than the time until kube-controller-manager deletes a Pod whose Node no longer exists, as that of a Machine
// that was not drained: it looks every 20 seconds, and waits for 40 in between (Kubernetes: pkg/controller/podgc).
const podGC = 2 * time.Minute

// leavingPods is how many replicas leaving.yaml has. Each Pod has its own Node.
const leavingPods = 20

// A template with 20 Nodes that is deleted waits for its NodeClaims. After its NodePool is deleted, nothing is left, and
// what a user has created stays.
func TestTemplateDeletion(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{})
	for _, kind := range inTurn(t, kinds.All) {
		if !t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			name := createLeaving(ctx, g, s, kind)
			awaitNodes(ctx, g, s, leavingPods)

			template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
			g.Expect(s.Workload.Delete(ctx, template)).To(Succeed())
			g.Eventually(ctx, func(g Gomega) {
				g.Expect(s.Workload.Get(ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
				for _, condition := range []string{v1alpha1.ConditionDeletable, status.ConditionReady} {
					g.Expect(template.StatusConditions().Get(condition)).To(And(
						HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonNodeClaimsRemain),
						HaveField("Message", ContainSubstring("waits for 20 NodeClaims: delete the NodePools"))), condition)
				}
				g.Expect(eventsOf(ctx, g, s, name)).To(ContainElement("WaitingOnNodeClaimTermination"))
			}).WithTimeout(30 * time.Second).WithPolling(poll).Should(Succeed())
			checked, err := uninstallCheck(ctx, s)
			g.Expect(err).To(HaveOccurred(), "it is not safe to uninstall the operator: %s", checked)
			g.Expect(checked).To(And(ContainSubstring("20 NodeClaims: "), ContainSubstring("1 KarpenterMachineTemplates: "+name), ContainSubstring("20 Machines with links or hooks: ")))

			// The Pods stay, so Karpenter would launch Nodes for them if it could.
			g.Expect(s.Workload.Delete(ctx, &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
			awaitNothing(ctx, t, g, s)
			expectBase(ctx, g, s, kind, name)
		}) {
			return
		}
	}
	t.Run("while the operator does not run", func(t *testing.T) { testTemplateDeletedMeanwhile(ctx, t, s) })
}

// testTemplateDeletedMeanwhile deletes templates, without their finalizers, while the operator does not run. One has
// left an empty MachineDeployment, the other only copies.
func testTemplateDeletedMeanwhile(ctx context.Context, t *testing.T, s *stack.Stack) {
	g := NewWithT(t)
	var names []string
	for _, suffix := range []string{"resource", "copy"} {
		name := "leaving-" + suffix
		createAs(ctx, g, s, kinds.MachineDeployment, "leaving.yaml", "leaving", name)
		names = append(names, name)
	}
	awaitNodes(ctx, g, s, 2*leavingPods)
	// The templates stay, and keep their empty MachineDeployments for 30 minutes.
	g.Expect(errors.Join(deletePods(ctx, s), s.Workload.DeleteAllOf(ctx, &karpv1.NodePool{}))).To(Succeed())
	g.Eventually(ctx, func() (census.Census, error) { return whatIsLeft(ctx, s) }).
		WithTimeout(3*time.Minute).WithPolling(poll).Should(Equal(census.Census{}), "what is left")
	g.Expect(s.StopComponent(ctx, stack.Operator)).To(Succeed())
	for _, name := range names {
		template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
		g.Expect(s.Workload.Delete(ctx, template)).To(Succeed())
		g.Expect(s.Workload.Patch(ctx, template, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	}
	left := client.MatchingLabels{v1alpha1.TemplateLabel: names[1]}
	g.Expect(s.Management.DeleteAllOf(ctx, &clusterv1.MachineDeployment{}, client.InNamespace(stack.ClusterNamespace), left)).To(Succeed())
	g.Eventually(ctx, func(g Gomega) {
		deployments := &clusterv1.MachineDeploymentList{}
		g.Expect(s.Management.List(ctx, deployments, left)).To(Succeed())
		g.Expect(deployments.Items).To(BeEmpty())
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	copies, err := kinds.Infrastructures(ctx, s.Management)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lo.CountBy(copies, func(i kinds.Infrastructure) bool { return i.Labels[v1alpha1.TemplateLabel] == names[1] })).To(Equal(2), "copies of a template that no longer exists")

	g.Expect(s.StartComponent(ctx, stack.Operator)).To(Succeed())
	awaitNothing(ctx, t, g, s)
}

// A Cluster with 20 Nodes of each kind is deleted. The operator ends before any of its Machines has been deleted, as if
// it ran on one of them: Cluster API deletes everything nevertheless.
func TestClusterDeletionOutlivesTheOperator(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{})
	g := NewWithT(t)
	for _, kind := range kinds.All {
		createLeaving(ctx, g, s, kind)
	}
	awaitNodes(ctx, g, s, 2*leavingPods)

	// Without the infrastructure provider, no Machine can be deleted.
	g.Expect(s.StopComponent(ctx, stack.Infrastructure)).To(Succeed())
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: stack.ClusterName}}
	began := time.Now()
	g.Expect(s.Management.Delete(ctx, cluster)).To(Succeed())
	g.Eventually(ctx, func(g Gomega) {
		machines := &clusterv1.MachineList{}
		g.Expect(s.Management.List(ctx, machines)).To(Succeed())
		g.Expect(machines.Items).To(HaveLen(2*leavingPods), "Machines that exist")
		g.Expect(lo.CountBy(machines.Items, func(machine clusterv1.Machine) bool { return lifecycle.HasHooks(&machine) })).To(BeZero(), "Machines with hooks")
	}).WithTimeout(30 * time.Second).WithPolling(poll).Should(Succeed())
	t.Logf("the hooks of all Machines are removed after %.1fs", time.Since(began).Seconds())
	g.Expect(s.StopComponent(ctx, stack.Operator)).To(Succeed())
	g.Expect(s.StartComponent(ctx, stack.Infrastructure)).To(Succeed())
	g.Eventually(ctx, func() bool {
		return apierrors.IsNotFound(s.Management.Get(ctx, client.ObjectKeyFromObject(cluster), cluster))
	}).WithTimeout(3*time.Minute).WithPolling(poll).Should(BeTrue(), "the Cluster is deleted without the operator")

	// What is left is in the workload cluster. Templates are deletable although their Cluster does not exist.
	g.Expect(s.StartComponent(ctx, stack.Operator)).To(Succeed())
	g.Expect(errors.Join(s.Workload.DeleteAllOf(ctx, &v1alpha1.KarpenterMachineTemplate{}), s.Workload.DeleteAllOf(ctx, &karpv1.NodePool{}))).To(Succeed())
	awaitNothing(ctx, t, g, s)
}

// createLeaving creates the objects of leaving.yaml with a name for the kind, which it returns.
func createLeaving(ctx context.Context, g *WithT, s *stack.Stack, kind kinds.Kind) string {
	name := "leaving-" + strings.ToLower(string(kind))
	createAs(ctx, g, s, kind, "leaving.yaml", "leaving", name)
	return name
}

// awaitNodes waits until Pods run on Nodes of their own.
func awaitNodes(ctx context.Context, g *WithT, s *stack.Stack, pods int) {
	g.Eventually(ctx, func() (census.Census, error) { return whatExists(ctx, s) }).
		WithTimeout(3*time.Minute).WithPolling(poll).Should(Satisfy(func(c census.Census) bool { return c.Settled(pods) }), "%d Pods that run", pods)
}

// awaitNothing waits until nothing is left of the operator, then of the Pods, and prints that.
func awaitNothing(ctx context.Context, t *testing.T, g *WithT, s *stack.Stack) {
	t.Helper()
	began := time.Now()
	g.Eventually(ctx, func(g Gomega) {
		left, err := whatExists(ctx, s)
		g.Expect(err).NotTo(HaveOccurred())
		left.Pods, left.Running = 0, 0 // They wait.
		g.Expect(left).To(Equal(census.Census{}), "what is left")
		g.Expect(offersLeft(ctx, s)).To(BeZero(), "templates, NodePools and generated objects that are left")
	}).WithTimeout(4 * time.Minute).WithPolling(poll).Should(Succeed())
	checked, err := uninstallCheck(ctx, s)
	g.Expect(err).NotTo(HaveOccurred(), checked)
	t.Logf("after %.0fs: %s", time.Since(began).Seconds(), checked)

	g.Expect(deletePods(ctx, s)).To(Succeed())
	g.Eventually(ctx, func() (census.Census, error) { return whatExists(ctx, s) }).
		WithTimeout(podGC).WithPolling(poll).Should(Equal(census.Census{}), "what is left")
}

func deletePods(ctx context.Context, s *stack.Stack) error {
	inDefault := client.InNamespace(corev1.NamespaceDefault)
	return errors.Join(
		s.Workload.DeleteAllOf(ctx, &appsv1.Deployment{}, inDefault, client.PropagationPolicy(metav1.DeletePropagationBackground)),
		s.Workload.DeleteAllOf(ctx, &corev1.Pod{}, inDefault),
	)
}

// expectBase checks that the base template of the user exists.
func expectBase(ctx context.Context, g *WithT, s *stack.Stack, kind kinds.Kind, name string) {
	base := lo.Ternary[client.Object](kind == kinds.MachinePool, &infrav1.SimulatedMachinePoolTemplate{}, &infrav1.SimulatedMachineTemplate{})
	g.Expect(s.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: name}, base)).To(Succeed(), "the base template")
}

// eventsOf returns the reasons of the events of a template.
func eventsOf(ctx context.Context, g Gomega, s *stack.Stack, template string) []string {
	events := &corev1.EventList{}
	g.Expect(s.Workload.List(ctx, events)).To(Succeed())
	return lo.FilterMap(events.Items, func(event corev1.Event, _ int) (string, bool) {
		return event.Reason, event.InvolvedObject.Kind == v1alpha1.Kind && event.InvolvedObject.Name == template
	})
}

// uninstallCheck runs the subcommand of the operator with the operator's settings, and returns what it prints.
func uninstallCheck(ctx context.Context, s *stack.Stack) (string, error) {
	env, command := s.OperatorCommand()
	check := exec.CommandContext(ctx, command[0], append([]string{"uninstall-check"}, command[1:]...)...)
	check.Env = append(os.Environ(), env...)
	printed, err := check.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", printed, err)
	}
	return string(printed), err
}
