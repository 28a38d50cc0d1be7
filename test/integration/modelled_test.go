// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"maps"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/model"
)

// modelled is a MachineDeployment that only one spec uses, with what the model knows about it. The
// Nodes of its Machines join when method join is called.
type modelled struct {
	*clusterv1.MachineDeployment
	// replicas and machineSetReplicas are the replicas of both according to the model.
	replicas, machineSetReplicas int32
	// before are the Machines after the last step.
	before []model.Machine
	// held has the functions that continue the deletion of held Machines.
	held map[string]func(context.Context)
}

// newModelled creates a MachineDeployment without replicas, whose Machines have the given
// annotations.
func newModelled(ctx context.Context, name string, annotations map[string]string) *modelled {
	GinkgoHelper()
	template := &infrav1.SimulatedMachineTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: name},
		Spec: infrav1.SimulatedMachineTemplateSpec{Template: infrav1.SimulatedMachineTemplateResource{Spec: infrav1.SimulatedMachineSpec{
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			Delays:   infrav1.Delays{NodeJoin: infrav1.Delay{Duration: metav1.Duration{Duration: never}}},
		}}},
	}
	selector := map[string]string{clusterv1.ClusterNameLabel: served.Name, clusterv1.MachineDeploymentNameLabel: name}
	m := &modelled{held: map[string]func(context.Context){}, MachineDeployment: &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: served.Name}},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: served.Name,
			Replicas:    new(int32(0)),
			Selector:    metav1.LabelSelector{MatchLabels: selector},
			Rollout:     clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}},
			Deletion:    clusterv1.MachineDeploymentDeletionSpec{Order: clusterv1.NewestMachineSetDeletionOrder},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: maps.Clone(selector), Annotations: annotations},
				Spec: clusterv1.MachineSpec{
					ClusterName:       served.Name,
					Bootstrap:         clusterv1.Bootstrap{DataSecretName: new("bootstrap")},
					InfrastructureRef: *machineDeployments.infrastructureRef(name),
				},
			},
		},
	}}
	for _, object := range []client.Object{template, m.MachineDeployment} {
		Expect(env.client.Create(ctx, object)).To(Succeed())
	}
	DeferCleanup(func(ctx SpecContext) {
		// The rest is then deleted automatically: AfterSuite waits for it.
		env.delete(ctx, m.MachineDeployment)
		env.delete(ctx, template)
	})
	return m
}

func machineNamed(name string) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: name}}
}

// setReplicas sets the MachineDeployment's replicas.
func (m *modelled) setReplicas(ctx context.Context, replicas int32) {
	GinkgoHelper()
	m.replicas = replicas
	env.change(ctx, m.MachineDeployment, func() { m.Spec.Replicas = &replicas })
}

// hold stops the deletion of a Machine.
func (m *modelled) hold(ctx context.Context, name string) {
	GinkgoHelper()
	m.held[name] = env.hold(ctx, machineNamed(name))
}

// release continues the deletion of a held Machine.
func (m *modelled) release(ctx context.Context, name string) {
	GinkgoHelper()
	m.held[name](ctx)
	delete(m.held, name)
}

// join lets the Node of a Machine join, and waits until the Machine has it.
func (m *modelled) join(ctx context.Context, name string) {
	GinkgoHelper()
	instance := &infrav1.SimulatedMachine{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: name}}
	// Not with env.change: the provider writes it too often at this time.
	Expect(env.client.Patch(ctx, instance, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"delays":{"nodeJoin":null}}}`)))).To(Succeed())
	Eventually(ctx, func() []model.Machine { return m.machines(ctx) }).Should(ContainElement(
		And(HaveField("Name", name), HaveField("Healthy", true))))
}

// joinAll lets the Nodes of all Machines join.
func (m *modelled) joinAll(ctx context.Context) {
	GinkgoHelper()
	for _, machine := range m.before {
		if !machine.Healthy {
			m.join(ctx, machine.Name)
		}
	}
}

// machines returns the existing Machines, as the model sees them.
func (m *modelled) machines(ctx context.Context) []model.Machine {
	GinkgoHelper()
	list := &clusterv1.MachineList{}
	Expect(env.client.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: m.Name})).To(Succeed())
	return lo.Map(list.Items, func(machine clusterv1.Machine, _ int) model.Machine {
		_, annotated := machine.Annotations[clusterv1.DeleteMachineAnnotation]
		return model.Machine{
			Name:             machine.Name,
			Created:          machine.CreationTimestamp.UTC(),
			Deleting:         !machine.DeletionTimestamp.IsZero(),
			DeleteAnnotation: annotated,
			Healthy: machine.DeletionTimestamp.IsZero() && machine.Status.NodeRef.IsDefined() &&
				!conditions.IsFalse(&machine, clusterv1.MachineNodeHealthyCondition),
		}
	})
}

// machineSet returns the only MachineSet.
func (m *modelled) machineSet(ctx context.Context) clusterv1.MachineSet {
	GinkgoHelper()
	list := &clusterv1.MachineSetList{}
	Expect(env.client.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: m.Name})).To(Succeed())
	Expect(list.Items).To(HaveLen(1))
	return list.Items[0]
}

// watchMachineSet returns a function that returns the replicas that the MachineSet has had since.
func (m *modelled) watchMachineSet(ctx context.Context) (given func() []int32) {
	GinkgoHelper()
	var mu sync.Mutex
	var replicas []int32
	informer, err := env.watches.GetInformer(ctx, &clusterv1.MachineSet{})
	Expect(err).NotTo(HaveOccurred())
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		was, is := before.(*clusterv1.MachineSet), after.(*clusterv1.MachineSet)
		if is.Labels[clusterv1.MachineDeploymentNameLabel] != m.Name || *was.Spec.Replicas == *is.Spec.Replicas {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		replicas = append(replicas, *is.Spec.Replicas)
	}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return informer.RemoveEventHandler(registration) })
	return func() []int32 {
		mu.Lock()
		defer mu.Unlock()
		return replicas
	}
}

// step does one operation, and waits until Cluster API has settled in the state that the model
// predicts from the Machines before.
func (m *modelled) step(ctx context.Context, name string, do func()) {
	GinkgoHelper()
	By(m.Name + ": " + name)
	Expect(m.machines(ctx)).To(ConsistOf(m.before), "%s: something changed between the steps", m.Name)
	do()
	// What was deleted by hand is removed without the model, unless it is held.
	known := lo.SliceToMap(m.before, func(machine model.Machine) (string, bool) { return machine.Name, true })
	want := lo.Filter(m.machines(ctx), func(machine model.Machine, _ int) bool {
		return known[machine.Name] && (!machine.Deleting || m.held[machine.Name] != nil)
	})
	want = m.settle(want)
	Eventually(ctx, func(g Gomega) {
		g.Expect(env.get(ctx, m.MachineDeployment)).To(Succeed())
		g.Expect(m.Status.ObservedGeneration).To(Equal(m.Generation))
		set := m.machineSet(ctx)
		g.Expect(*set.Spec.Replicas).To(Equal(m.machineSetReplicas), "the MachineSet's replicas")
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
		g.Expect(lo.FromPtr(set.Status.Replicas)).To(BeEquivalentTo(len(want)), "Machines in the MachineSet's status")
		now := m.machines(ctx)
		g.Expect(m.kinds(now, known)).To(Equal(m.kinds(want, known)), "Machines")
		healthy := lo.CountBy(now, func(machine model.Machine) bool { return machine.Healthy })
		g.Expect(lo.FromPtr(set.Status.ReadyReplicas)).To(BeEquivalentTo(healthy), "healthy Machines in the view of the MachineSet")
		m.before = now
	}).Should(Succeed(), "%s: %s, with %+v", m.Name, name, m.before)
}

// settle returns the Machines at the end, and sets the MachineSet's replicas.
func (m *modelled) settle(machines []model.Machine) []model.Machine {
	for made := 0; ; {
		replicas := model.MachineDeployment(m.replicas, m.machineSetReplicas, int32(len(machines)))
		create, remove := model.MachineSet(replicas, false, machines)
		if replicas == m.machineSetReplicas && create == 0 && len(remove) == 0 {
			return machines
		}
		m.machineSetReplicas = replicas
		var next []model.Machine
		for _, machine := range machines {
			if lo.Contains(remove, machine.Name) {
				if m.held[machine.Name] == nil {
					continue
				}
				machine.Deleting, machine.Healthy = true, false
			}
			next = append(next, machine)
		}
		for range create {
			made++
			next = append(next, model.Machine{Name: fmt.Sprintf("new %d", made)})
		}
		machines = next
	}
}

// kinds counts Machines that the model does not distinguish: new ones, and healthy ones of the same
// second. All others are counted by name.
func (m *modelled) kinds(machines []model.Machine, known map[string]bool) map[string]int {
	return lo.CountValuesBy(machines, func(machine model.Machine) string {
		name := machine.Name
		switch {
		case !known[machine.Name]:
			name = "new"
		case machine.Healthy && !machine.DeleteAnnotation:
			name = "healthy, of " + machine.Created.String()
		}
		return fmt.Sprintf("%s, deleting: %t", name, machine.Deleting)
	})
}
