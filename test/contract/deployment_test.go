// SPDX-License-Identifier: Apache-2.0

//go:build contract

package contract

import (
	"cmp"
	"context"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// never is a delay that no check waits for.
const never = 24 * time.Hour

// The hooks that checks use.
const (
	drainHookName     = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/contract"
	terminateHookName = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/contract"
)

// deployment is a MachineDeployment as the operator generates it, with its infrastructure template.
type deployment struct {
	*world
	ctx  context.Context
	g    Gomega
	name string
}

// newDeployment creates a MachineDeployment whose Machines get Nodes after a time, in a Cluster.
func (w *world) newDeployment(ctx context.Context, g Gomega, name string, replicas int32, join time.Duration, changes ...func(*clusterv1.MachineDeployment)) *deployment {
	d := &deployment{world: w, ctx: ctx, g: g, name: name}
	g.Expect(w.Create(ctx, &infrav1.SimulatedMachineTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       infrav1.SimulatedMachineTemplateSpec{Template: infrav1.SimulatedMachineTemplateResource{Spec: machineSpec(join)}},
	})).To(Succeed())
	object := d.object()
	for _, change := range changes {
		change(object)
	}
	object.Spec.Replicas = &replicas
	for _, labels := range []map[string]string{object.Spec.Selector.MatchLabels, object.Spec.Template.Labels} {
		labels[clusterv1.ClusterNameLabel] = object.Spec.ClusterName
	}
	object.Spec.Template.Spec.ClusterName = object.Spec.ClusterName
	g.Expect(w.Create(ctx, object)).To(Succeed())
	return d
}

// machineSpec is that of simulated machines whose Nodes join after a time.
func machineSpec(join time.Duration) infrav1.SimulatedMachineSpec {
	spec := infrav1.SimulatedMachineSpec{Capacity: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}}
	spec.Delays.NodeJoin.Duration.Duration = join
	return spec
}

// object is the MachineDeployment as it is created.
func (d *deployment) object() *clusterv1.MachineDeployment {
	selector := func() map[string]string { return map[string]string{clusterv1.MachineDeploymentNameLabel: d.name} }
	return &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.name, Finalizers: []string{clusterv1.MachineDeploymentFinalizer}},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: stack.ClusterName,
			Selector:    metav1.LabelSelector{MatchLabels: selector()},
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				Type: clusterv1.OnDeleteMachineDeploymentStrategyType,
			}},
			Deletion: clusterv1.MachineDeploymentDeletionSpec{Order: clusterv1.NewestMachineSetDeletionOrder},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: selector()},
				Spec: clusterv1.MachineSpec{
					Bootstrap: clusterv1.Bootstrap{DataSecretName: lo.ToPtr(stack.BootstrapSecretName)},
					InfrastructureRef: clusterv1.ContractVersionedObjectReference{
						APIGroup: infrav1.GroupVersion.Group, Kind: "SimulatedMachineTemplate", Name: d.name,
					},
				},
			},
		},
	}
}

// setJoin sets after what time the Nodes of Machines join that are created from now on.
func (d *deployment) setJoin(join time.Duration) {
	change(d.ctx, d.g, d.world, &infrav1.SimulatedMachineTemplate{ObjectMeta: d.meta()}, func(template *infrav1.SimulatedMachineTemplate) {
		template.Spec.Template.Spec.Delays.NodeJoin.Duration.Duration = join
	})
}

func (d *deployment) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: d.name}
}

// change changes the MachineDeployment.
func (d *deployment) change(changes func(*clusterv1.MachineDeployment)) {
	change(d.ctx, d.g, d.world, &clusterv1.MachineDeployment{ObjectMeta: d.meta()}, changes)
}

// read returns the MachineDeployment.
func (d *deployment) read(g Gomega) *clusterv1.MachineDeployment {
	object := &clusterv1.MachineDeployment{}
	g.Expect(d.Get(d.ctx, client.ObjectKey{Namespace: namespace, Name: d.name}, object)).To(Succeed())
	return object
}

// scale sets the replicas.
func (d *deployment) scale(replicas int32) {
	d.change(func(object *clusterv1.MachineDeployment) { object.Spec.Replicas = &replicas })
}

// ofDeployment selects what belongs to the MachineDeployment.
func (d *deployment) ofDeployment() []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: d.name}}
}

// sets returns the MachineSets, the oldest first.
func (d *deployment) sets(g Gomega) []clusterv1.MachineSet {
	list := &clusterv1.MachineSetList{}
	g.Expect(d.List(d.ctx, list, d.ofDeployment()...)).To(Succeed())
	slices.SortFunc(list.Items, func(a, b clusterv1.MachineSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items
}

// set returns the only MachineSet.
func (d *deployment) set(g Gomega) *clusterv1.MachineSet {
	sets := d.sets(g)
	g.Expect(sets).To(HaveLen(1), "MachineSets")
	return &sets[0]
}

// machines returns all Machines by name.
func (d *deployment) machines(g Gomega) []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	g.Expect(d.List(d.ctx, list, d.ofDeployment()...)).To(Succeed())
	return list.Items
}

// live returns the names of the Machines that are not being deleted.
func (d *deployment) live(g Gomega) []string {
	return named(lo.Filter(d.machines(g), func(machine clusterv1.Machine, _ int) bool { return machine.DeletionTimestamp.IsZero() }))
}

// all returns the names of all Machines.
func (d *deployment) all(g Gomega) []string { return named(d.machines(g)) }

// expectMachines waits until there are as many Machines, on which Cluster API has acted, and none is being deleted. It returns
// their names.
func (d *deployment) expectMachines(count int) []string {
	d.g.Eventually(func(g Gomega) {
		machines := d.machines(g)
		g.Expect(machines).To(HaveLen(count), "Machines")
		for i := range machines {
			g.Expect(machines[i].DeletionTimestamp).To(BeNil(), "the deletion of Machine %s", machines[i].Name)
			// Without the finalizer, a Machine no longer exists as soon as it is deleted.
			g.Expect(machines[i].Finalizers).To(ContainElement(clusterv1.MachineFinalizer), "finalizers of Machine %s", machines[i].Name)
		}
	}).Should(Succeed())
	return d.live(d.g)
}

// expectNodes does the same, and waits for their Nodes.
func (d *deployment) expectNodes(count int) []string {
	d.g.Eventually(func(g Gomega) {
		machines := d.machines(g)
		g.Expect(machines).To(HaveLen(count), "Machines")
		for i := range machines {
			g.Expect(machines[i].DeletionTimestamp).To(BeNil(), "the deletion of Machine %s", machines[i].Name)
			g.Expect(machines[i].Status.NodeRef.Name).NotTo(BeEmpty(), "the Node of Machine %s", machines[i].Name)
		}
	}).Should(Succeed())
	return d.all(d.g)
}

// expectActed waits until the only MachineSet has these replicas and has acted on them.
func (d *deployment) expectActed(replicas int32) {
	d.g.Eventually(func(g Gomega) {
		object, set := d.read(g), d.set(g)
		g.Expect(object.Status.ObservedGeneration).To(Equal(object.Generation), "the observed generation of the MachineDeployment")
		g.Expect(lo.FromPtr(set.Spec.Replicas)).To(Equal(replicas), "replicas of the MachineSet")
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation), "the observed generation of the MachineSet")
	}).Should(Succeed())
}

// expectLeft expects that lower replicas leave these Machines, and no others.
func (d *deployment) expectLeft(replicas int32, left ...string) {
	d.scale(replicas)
	d.expectActed(replicas)
	d.g.Expect(d.live(d.g)).To(ConsistOf(lo.ToAnySlice(left)...), "live Machines")
}

// expectStill expects that the Machines stay as they are.
func (d *deployment) expectStill(names ...string) {
	d.g.Consistently(func(g Gomega) { g.Expect(d.all(g)).To(ConsistOf(lo.ToAnySlice(names)...), "Machines") }).Should(Succeed())
}

// annotate sets an annotation of a Machine.
func (w *world) annotate(ctx context.Context, g Gomega, machine, annotation string) {
	change(ctx, g, w, machineNamed(machine), func(machine *clusterv1.Machine) { metav1.SetMetaDataAnnotation(&machine.ObjectMeta, annotation, "") })
}

// release removes an annotation of a Machine.
func (w *world) release(ctx context.Context, g Gomega, machine, annotation string) {
	change(ctx, g, w, machineNamed(machine), func(machine *clusterv1.Machine) { delete(machine.Annotations, annotation) })
}

// expectReason waits until a condition of a Machine has a reason.
func (w *world) expectReason(ctx context.Context, g Gomega, machine, condition, reason string) {
	g.Eventually(func(g Gomega) {
		object := machineNamed(machine)
		g.Expect(w.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		found := meta.FindStatusCondition(object.Status.Conditions, condition)
		g.Expect(found).NotTo(BeNil(), "condition %s of Machine %s", condition, machine)
		g.Expect(found.Reason).To(Equal(reason), "the reason of condition %s of Machine %s: %s", condition, machine, found.Message)
	}).Should(Succeed())
}

// expectGone waits until an object does not exist.
func (w *world) expectGone(ctx context.Context, g Gomega, object client.Object) {
	key := client.ObjectKeyFromObject(object)
	g.Eventually(func() error { return w.Get(ctx, key, object) }).Should(MatchError(ContainSubstring("not found")), func() string {
		return "the object " + key.String() + " must not exist any more"
	})
}

func machineNamed(name string) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
