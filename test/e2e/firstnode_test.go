// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// The commands of the guide bring a Cluster with a topology to a Pod on a new Node. An upgrade of the topology replaces
// the Node, and so does another template of its ClusterClass, but only if its content differs. Nothing is left.
func TestFirstNode(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{Topology: true, Placement: stack.InWorkload})
	run := &topology{s: s, guide: openGuide(t, s, "first-node.md")}
	g := NewWithT(t)
	g.Expect(run.guide.yamlLines("first-node.yaml")).To(BeNumerically("<=", 25), "lines of YAML")
	pattern := run.pattern(ctx, g)
	began := time.Now()
	for _, step := range []struct {
		name string
		run  func(context.Context, *testing.T)
	}{
		{"a Pod runs on a new Node", func(ctx context.Context, t *testing.T) {
			for _, section := range []string{"1. Choose a MachineDeployment", "2. Describe the machines", "3. Run a Pod"} {
				run.guide.run(ctx, t, section)
			}
			t.Logf("%d lines of YAML, and the Pod runs after %s", run.guide.yamlLines("first-node.yaml"), time.Since(began).Round(time.Second))
		}},
		{"the topology is upgraded while a Pod waits", run.upgrade},
		{"the ClusterClass gets another template of the same content", run.rename},
		{"the ClusterClass gets a template of other content", run.rotate},
		{"the Pods are deleted, and then everything", run.remove},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(ctx, t) }) {
			return
		}
	}
	after := run.pattern(ctx, g)
	g.Expect(after.UID).To(Equal(pattern.UID))
	g.Expect(after.Spec.Replicas).To(HaveValue(BeZero()))
	g.Expect(after.Labels).To(Equal(pattern.Labels), "the labels of the MachineDeployment that was followed")
}

// topology is a stack whose Cluster has a topology, with the objects of the guide.
type topology struct {
	s     *stack.Stack
	guide *guide
}

// pattern returns the MachineDeployment of the topology.
func (r *topology) pattern(ctx context.Context, g Gomega) *clusterv1.MachineDeployment {
	list := &clusterv1.MachineDeploymentList{}
	g.Expect(r.s.Management.List(ctx, list, client.HasLabels{clusterv1.ClusterTopologyOwnedLabel})).To(Succeed())
	g.Expect(list.Items).To(HaveLen(1))
	return &list.Items[0]
}

// upgrade runs the guide's upgrade, which Cluster API's kubeadm control plane provider does. While the control plane is upgraded, a
// NodeClaim waits, and no Node is replaced.
func (r *topology) upgrade(ctx context.Context, t *testing.T) {
	g := NewWithT(t)
	before := r.claims(ctx, g)
	held := r.controlPlaneMachine(ctx, g)
	r.annotate(ctx, g, held, func(annotations map[string]string) { annotations[holding] = "" })
	r.guide.run(ctx, t, "4. Upgrade")
	r.expectCondition(ctx, g, v1alpha1.ConditionVersionReady, true, "v1.36.0, which is that of MachineDeployment", "is being upgraded from v1.36.0 to v1.36.1")
	scalePods(ctx, g, r.s, "first", 2)
	g.Eventually(ctx, func(g Gomega) {
		claims := &karpv1.NodeClaimList{}
		g.Expect(r.s.Workload.List(ctx, claims)).To(Succeed())
		waiting := lo.CountBy(claims.Items, func(claim karpv1.NodeClaim) bool {
			condition := claim.StatusConditions().Get(v1alpha1.ConditionMachineAvailable)
			return condition != nil && condition.IsUnknown() && condition.Reason == v1alpha1.ReasonBlocked
		})
		g.Expect(waiting).To(Equal(1), "NodeClaims that wait")
	}).WithTimeout(2 * time.Minute).WithPolling(poll).Should(Succeed())
	g.Expect(r.claims(ctx, g)).To(ContainElements(lo.ToAnySlice(before)...))
	g.Expect(r.template(ctx, g).StatusConditions().Root().IsTrue()).To(BeTrue())

	began := time.Now()
	r.annotate(ctx, g, held, func(annotations map[string]string) { delete(annotations, holding) })
	r.expectReplaced(ctx, g, before, 2)
	machines := &clusterv1.MachineList{}
	g.Expect(r.s.Management.List(ctx, machines)).To(Succeed())
	for _, machine := range machines.Items {
		g.Expect(machine.Spec.Version).To(Equal("v1.36.1"), "the version of Machine %s", machine.Name)
	}
	g.Expect(r.controlPlaneMachine(ctx, g).Name).NotTo(Equal(held.Name), "the Machine of the control plane")
	t.Logf("%s after the control plane, the waiting Pod runs and the Node of the version before is replaced", time.Since(began).Round(time.Second))
	scalePods(ctx, g, r.s, "first", 1)
	r.expectRunning(ctx, g, 1)
	r.guide.run(ctx, t, "What happens")
}

// rename gives the ClusterClass a template of the same content and another name. Cluster API then only changes an
// annotation of the template that the MachineDeployment has. test/integration gives that another name, too.
func (r *topology) rename(ctx context.Context, t *testing.T) {
	g := NewWithT(t)
	before, ref := r.claims(ctx, g), r.pattern(ctx, g).Spec.Template.Spec.InfrastructureRef
	r.useTemplate(ctx, g, "same", func(*infrav1.SimulatedMachineSpec) {})
	t.Logf("the MachineDeployment refers to %s, and before to %s", r.pattern(ctx, g).Spec.Template.Spec.InfrastructureRef.Name, ref.Name)
	r.expectCondition(ctx, g, v1alpha1.ConditionNodesCurrent, true)
	g.Consistently(ctx, func(g Gomega) []string { return r.claims(ctx, g) }).WithTimeout(10 * time.Second).WithPolling(poll).Should(Equal(before))
}

// rotate gives the ClusterClass a template of other content.
func (r *topology) rotate(ctx context.Context, t *testing.T) {
	g := NewWithT(t)
	before, ref := r.claims(ctx, g), r.pattern(ctx, g).Spec.Template.Spec.InfrastructureRef
	began := time.Now()
	r.useTemplate(ctx, g, "other", func(spec *infrav1.SimulatedMachineSpec) { spec.NodeLabels = map[string]string{"disk": "ssd"} })
	g.Expect(r.pattern(ctx, g).Spec.Template.Spec.InfrastructureRef.Name).NotTo(Equal(ref.Name), "the template of the MachineDeployment")
	r.expectReplaced(ctx, g, before, 1)
	nodes := &corev1.NodeList{}
	g.Expect(r.s.Workload.List(ctx, nodes, stack.Workers)).To(Succeed())
	g.Expect(nodes.Items[0].Labels).To(HaveKeyWithValue("disk", "ssd"))
	t.Logf("%s after the change of the ClusterClass, the Node is replaced", time.Since(began).Round(time.Second))
}

// useTemplate lets the ClusterClass refer to a changed copy of its infrastructure template, and waits until the topology
// has taken it over.
func (r *topology) useTemplate(ctx context.Context, g *WithT, name string, change func(*infrav1.SimulatedMachineSpec)) {
	class := &clusterv1.ClusterClass{}
	g.Expect(r.s.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: stack.ClusterClassName}, class)).To(Succeed())
	ref := &class.Spec.Workers.MachineDeployments[0].Infrastructure.TemplateRef
	original := &infrav1.SimulatedMachineTemplate{}
	g.Expect(r.s.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: ref.Name}, original)).To(Succeed())
	copied := &infrav1.SimulatedMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: name}, Spec: original.Spec}
	change(&copied.Spec.Template.Spec)
	g.Expect(r.s.Management.Create(ctx, copied)).To(Succeed())
	before := class.DeepCopy()
	ref.Name = name
	g.Expect(r.s.Management.Patch(ctx, class, client.MergeFrom(before))).To(Succeed())
	g.Eventually(ctx, func(g Gomega) {
		used := &infrav1.SimulatedMachineTemplate{}
		key := client.ObjectKey{Namespace: stack.ClusterNamespace, Name: r.pattern(ctx, g).Spec.Template.Spec.InfrastructureRef.Name}
		g.Expect(r.s.Management.Get(ctx, key, used)).To(Succeed())
		g.Expect(used.Annotations).To(HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, name))
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
}

// remove runs the rest of the guide. Nothing is left that was generated, and nothing has failed before.
func (r *topology) remove(ctx context.Context, t *testing.T) {
	g := NewWithT(t)
	g.Expect(r.template(ctx, g).Status.UnavailableOfferings).To(BeEmpty())
	r.guide.run(ctx, t, "5. Scale down")
	r.guide.run(ctx, t, "6. Clean up")
	g.Eventually(ctx, func() (census.Census, error) { return whatIsLeft(ctx, r.s) }).WithTimeout(time.Minute).WithPolling(poll).Should(Equal(census.Census{}), "what is left")
	for _, list := range []client.ObjectList{
		&clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &infrav1.SimulatedMachineTemplateList{}, &bootstrapv1.KubeadmConfigTemplateList{},
	} {
		g.Expect(r.s.Management.List(ctx, list, client.HasLabels{v1alpha1.TemplateLabel})).To(Succeed())
		g.Expect(meta.LenList(list)).To(BeZero(), "%T", list)
	}
}

// holding is the annotation of a Machine that stays while it is being deleted. The upgrade of a control plane with such a Machine does
// not end.
const holding = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/test"

// controlPlaneMachine returns the Machine of the control plane, which has only one while it is not upgraded.
func (r *topology) controlPlaneMachine(ctx context.Context, g Gomega) *clusterv1.Machine {
	list := &clusterv1.MachineList{}
	g.Expect(r.s.Management.List(ctx, list, client.HasLabels{clusterv1.MachineControlPlaneLabel})).To(Succeed())
	g.Expect(list.Items).To(HaveLen(1))
	return &list.Items[0]
}

func (r *topology) annotate(ctx context.Context, g Gomega, machine *clusterv1.Machine, change func(annotations map[string]string)) {
	before := machine.DeepCopy()
	change(machine.Annotations)
	g.Expect(r.s.Management.Patch(ctx, machine, client.MergeFrom(before))).To(Succeed())
}

func (r *topology) template(ctx context.Context, g Gomega) *v1alpha1.KarpenterMachineTemplate {
	template := &v1alpha1.KarpenterMachineTemplate{}
	g.Expect(r.s.Workload.Get(ctx, client.ObjectKey{Name: "first"}, template)).To(Succeed())
	return template
}

// claims returns the names of the NodeClaims that are not being deleted.
func (r *topology) claims(ctx context.Context, g Gomega) []string {
	claims := &karpv1.NodeClaimList{}
	g.Expect(r.s.Workload.List(ctx, claims)).To(Succeed())
	names := lo.FilterMap(claims.Items, func(claim karpv1.NodeClaim, _ int) (string, bool) {
		return claim.Name, claim.DeletionTimestamp.IsZero()
	})
	slices.Sort(names)
	return names
}

// expectCondition waits until the template has a condition, with texts in its message.
func (r *topology) expectCondition(ctx context.Context, g *WithT, kind string, is bool, texts ...string) {
	g.Eventually(ctx, func(g Gomega) {
		condition := r.template(ctx, g).StatusConditions().Get(kind)
		g.Expect(condition.IsTrue()).To(Equal(is), "%s: %s", kind, condition.Message)
		for _, text := range texts {
			g.Expect(condition.Message).To(ContainSubstring(text))
		}
	}).WithTimeout(2 * time.Minute).WithPolling(poll).Should(Succeed())
}

// expectReplaced waits until all Pods run, none of them on a Node from before.
func (r *topology) expectReplaced(ctx context.Context, g *WithT, before []string, pods int) {
	g.Eventually(ctx, func(g Gomega) {
		g.Expect(lo.Intersect(r.claims(ctx, g), before)).To(BeEmpty(), "NodeClaims from before")
	}).WithTimeout(5 * time.Minute).WithPolling(poll).Should(Succeed())
	r.expectRunning(ctx, g, pods)
	r.expectCondition(ctx, g, v1alpha1.ConditionNodesCurrent, true)
}

// expectRunning waits until so many Pods run, each with its own Node, and nothing else is left.
func (r *topology) expectRunning(ctx context.Context, g *WithT, pods int) {
	g.Eventually(ctx, func(g Gomega) {
		found, err := whatExists(ctx, r.s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Settled(pods)).To(BeTrue(), "the existing objects: %s", found)
	}).WithTimeout(3 * time.Minute).WithPolling(poll).Should(Succeed())
}
