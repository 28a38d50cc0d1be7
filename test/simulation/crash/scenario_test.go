// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"math"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
)

const (
	poolName     = "general"
	templateName = "general"
	catalogName  = "general"
	instanceType = "standard"

	infrastructureGroup = "infrastructure.cluster.x-k8s.io"
	infrastructureKind  = "TestMachineTemplate"
)

var (
	// prod is the Cluster.
	prod = types.NamespacedName{Namespace: "clusters", Name: "prod"}
	// zones are in the order of their prices.
	zones = []string{"zone-a", "zone-b"}
)

// newScene returns a simulation with a template, its catalog, a NodePool and a Cluster.
func newScene(scaling *scaling) *simulation {
	clock := clocktesting.NewFakeClock(start)
	w := newWorld(newServer(clock), clock, scaling)
	w.server.actor = "user"
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")}
	template := &v1alpha1.KarpenterMachineTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: templateName, Generation: 1}, // the generation of its conditions
		Spec: v1alpha1.KarpenterMachineTemplateSpec{
			// Longer than a run: other tests cover its end.
			ScalableResource: v1alpha1.ScalableResource{Kind: scaling.kind, EmptyTTLSeconds: new(int32(86400))},
			Template: v1alpha1.MachineTemplate{Spec: v1alpha1.MachineTemplateSpec{
				Bootstrap:         clusterv1.Bootstrap{DataSecretName: lo.ToPtr("bootstrap")},
				InfrastructureRef: &clusterv1.ContractVersionedObjectReference{APIGroup: infrastructureGroup, Kind: scaling.base, Name: "workers"},
			}},
			Patches: []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure, JSONPatches: []v1alpha1.JSONPatch{{
				Op: "add", Path: "/spec/template/spec/size", ValueFrom: &v1alpha1.JSONPatchValue{Template: "{{ .instanceType }}"},
			}}}},
			CatalogRefs: []v1alpha1.CatalogReference{{Name: catalogName}},
		},
	}
	isReady(template, clock)
	w.server.put(template)
	w.server.put(&v1alpha1.InstanceTypeCatalog{
		ObjectMeta: metav1.ObjectMeta{Name: catalogName},
		Spec: v1alpha1.InstanceTypeCatalogSpec{InstanceTypes: []v1alpha1.InstanceType{{
			Name: instanceType, Capacity: capacity,
			Offerings: []v1alpha1.Offering{
				{Zones: []v1alpha1.Zone{v1alpha1.Zone(zones[0])}, CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.1"},
				{Zones: []v1alpha1.Zone{v1alpha1.Zone(zones[1])}, CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.2"},
			},
		}}},
	})
	for _, kind := range []string{scaling.base, groupKind, instanceKind} {
		w.server.put(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name:   contract.CalculateCRDName(infrastructureGroup, kind),
			Labels: map[string]string{clusterv1.GroupVersion.String(): "v1"},
		}})
	}
	w.server.put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": infrastructureGroup + "/v1", "kind": scaling.base,
		"metadata": map[string]any{"namespace": prod.Namespace, "name": "workers"},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{}}},
	}})
	w.server.put(&karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: poolName},
		Spec:       karpv1.NodePoolSpec{Template: karpv1.NodeClaimTemplate{Spec: karpv1.NodeClaimTemplateSpec{NodeClassRef: nodeClassRef()}}},
	})
	w.server.put(&clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: prod.Namespace, Name: prod.Name, Finalizers: []string{clusterv1.ClusterFinalizer}},
		Status:     clusterv1.ClusterStatus{Initialization: clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: new(true), ControlPlaneInitialized: new(true)}},
	})
	return w
}

func nodeClassRef() *karpv1.NodeClassReference {
	return &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: templateName}
}

// The building blocks of scripts.

func atOnce(*simulation) bool { return true }

func both(a, b func(*simulation) bool) func(*simulation) bool {
	return func(w *simulation) bool { return a(w) && b(w) }
}

func want(claims int) func(*simulation) { return func(w *simulation) { w.wanted = claims } }

func deleteClaims(names ...string) func(*simulation) {
	return func(w *simulation) {
		for _, name := range names {
			if claim := w.claim(name); claim != nil || !w.isDisordered() { // otherwise it can have failed early
				must(w.live().Delete(context.Background(), claim))
			}
		}
	}
}

// deleteLinked deletes the claim that has a Machine. When the clock was set, or after an outage, several can have one:
// then it deletes one of them.
func deleteLinked(w *simulation) {
	for _, m := range w.machines() {
		if claim := w.liveClaim(claimUID(m)); claim != nil {
			deleteClaims(claim.Name)(w)
			return
		}
	}
}

// deleteMachineOf deletes the Machine of a claim, as a user does. When the clock was set, the claim can have failed early:
// then it is the Machine of another one.
func deleteMachineOf(name string) func(*simulation) {
	return func(w *simulation) {
		claim := w.claim(name)
		for _, m := range w.machines() {
			if claim != nil && claimUID(m) == claim.UID || claim == nil && w.isDisordered() && serving(w, m) {
				w.ended[m.Name] = true
				must(w.live().Delete(context.Background(), m))
				return
			}
		}
	}
}

// interrupt sets the taint with which a termination handler announces the end of the instance of a claim.
func interrupt(name string) func(*simulation) {
	return func(w *simulation) {
		w.changeNodeOf(name, func(node *corev1.Node) {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "aws-node-termination-handler/spot-itn", Effect: corev1.TaintEffectNoSchedule})
		})
	}
}

// changeNodeOf changes the Node of a claim. When the clock was set, the claim can have failed early.
func (w *simulation) changeNodeOf(name string, change func(*corev1.Node)) {
	if claim := w.claim(name); claim != nil || !w.isDisordered() {
		node := w.server.head["Node"][claim.Status.NodeName].DeepCopyObject().(*corev1.Node)
		change(node)
		w.server.put(node)
	}
}

// undo is Cluster API's controller of MachinePools, which writes the taints that the Node of a claim had before its
// registration (machinepool_controller_noderef.go, patchNodes).
func undo(name string) func(*simulation) {
	return func(w *simulation) {
		w.changeNodeOf(name, func(node *corev1.Node) {
			node.Spec.Taints = append(node.Spec.Taints, karpv1.UnregisteredNoExecuteTaint)
		})
	}
}

// ofEarlierRelease gives a claim a hash as an earlier release of the operator has computed it.
func ofEarlierRelease(name string) func(*simulation) {
	return func(w *simulation) {
		if claim := w.claim(name); claim != nil || !w.isDisordered() {
			claim = claim.DeepCopy()
			hashes := generate.ParseHashes(claim.Annotations[v1alpha1.MachineHashesAnnotation])
			hashes.Infrastructure = "0123456789abcdef"
			claim.Annotations[v1alpha1.MachineHashesAnnotation] = hashes.String()
			w.server.put(claim)
		}
	}
}

// unusedCopy is the name of a copy that nothing refers to.
const unusedCopy = "unused"

// leaveCopy creates another copy of the base template, as an operator that ended before it created the resource.
func leaveCopy(w *simulation) {
	unused := w.copied().DeepCopyObject().(client.Object)
	unused.SetName(unusedCopy)
	unused.SetOwnerReferences(nil)
	w.server.put(unused)
}

// deleteCopy deletes the copy of the base template that is in use, as a user does.
func deleteCopy(w *simulation) { w.delete(w.copied()) }

// copied returns the first copy of the base template.
func (w *simulation) copied() client.Object {
	for _, name := range sortedNames(w.server.head[w.scaling.base]) {
		if object := w.server.head[w.scaling.base][name]; object.GetLabels()[v1alpha1.TemplateLabel] != "" {
			return object
		}
	}
	return nil
}

// copyGone waits until the copy that nothing refers to is deleted.
func copyGone(w *simulation) bool { return w.server.head[w.scaling.base][unusedCopy] == nil }

func ended(w *simulation) bool { return len(w.ended) > 0 }

// endInstance ends the instance of one Machine, as the cloud does with a spot instance.
func endInstance(of func(*simulation, *clusterv1.Machine) bool) func(*simulation) {
	return func(w *simulation) {
		for _, m := range w.machines() {
			if instance := w.instance(m.Name); instance != nil && of(w, m) {
				w.ended[m.Name] = true
				must(w.live().Delete(context.Background(), instance))
				return
			}
		}
	}
}

func serving(w *simulation, m *clusterv1.Machine) bool { _, serves := w.serves(m); return serves }

func chosen(_ *simulation, m *clusterv1.Machine) bool { return leaving(m) }

func pause(paused bool) func(*simulation) {
	return func(w *simulation) {
		cluster := w.server.head["Cluster"][prod.Name].DeepCopyObject().(*clusterv1.Cluster)
		cluster.Spec.Paused = lo.ToPtr(paused)
		w.server.put(cluster)
	}
}

// blocked makes the preflight checks of all MachineSets fail, or pass.
func blocked(blocked bool) func(*simulation) { return func(w *simulation) { w.blocked = blocked } }

// many is more Machines than ever exist.
const many = math.MaxInt32

// makesAtMost limits the Machines of a MachineSet or MachinePool.
func makesAtMost(machines int) func(*simulation) {
	return func(w *simulation) { w.machineLimit = machines }
}

func all(do ...func(*simulation)) func(*simulation) {
	return func(w *simulation) {
		for _, f := range do {
			f(w)
		}
	}
}

// holdUntil stops the progress of Machines until a condition is met.
func holdUntil(happened func(*simulation) bool) func(*simulation) {
	return func(w *simulation) {
		w.holds = func() bool {
			if happened(w) {
				w.holds = nil
			}
			return w.holds != nil
		}
	}
}

// noNodeUntil stops Nodes from joining until a condition is met.
func noNodeUntil(happened func(*simulation) bool) func(*simulation) {
	return func(w *simulation) { w.alone = func() bool { return !happened(w) } }
}

// failOne lets a Machine fail that already serves a claim.
func failOne(w *simulation) {
	victim := ""
	w.fails = func(m *clusterv1.Machine) bool {
		if _, serves := w.serves(m); serves && victim == "" {
			victim = m.Name
		}
		return m.Name == victim
	}
}

// slowUntil stops the removal of deleted Machines until a condition is met.
func slowUntil(happened func(*simulation) bool) func(*simulation) {
	return func(w *simulation) { w.keeps = func() bool { return !happened(w) } }
}

// keepSpares sets the template's spareTTLSeconds.
func keepSpares(ttl time.Duration) func(*simulation) {
	return func(w *simulation) {
		w.changeTemplate(func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
			spec.SpareTTLSeconds = new(int32(ttl / time.Second))
		})
	}
}

// changeTemplate changes the template, and keeps its conditions.
func (w *simulation) changeTemplate(change func(*v1alpha1.KarpenterMachineTemplateSpec)) {
	template := w.template().DeepCopy()
	change(&template.Spec)
	template.Generation++
	isReady(template, w.clock)
	w.server.put(template)
}

// isReady sets the conditions that Ready depends on, and that all offerings were accepted.
func isReady(template *v1alpha1.KarpenterMachineTemplate, clock clock.Clock) {
	conditions := template.StatusConditions(status.WithClock(clock))
	for _, kind := range []string{v1alpha1.ConditionClusterReady, v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionVersionReady, v1alpha1.ConditionInstanceTypesReady} {
		conditions.SetTrue(kind)
	}
	template.Status.AcceptedHash = "accepted"
}

// existing creates a MachineDeployment before the operator starts, and makes the template adopt it
// instead of generating any.
func existing(replicas int32) func(*simulation) {
	return func(w *simulation) {
		w.changeTemplate(func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
			spec.CatalogRefs = nil
			spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
		})
		const name = "existing"
		w.server.put(&clusterv1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: prod.Namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: prod.Name},
				Annotations: map[string]string{
					"capacity.cluster-autoscaler.kubernetes.io/cpu":    "4",
					"capacity.cluster-autoscaler.kubernetes.io/memory": "8Gi",
					v1alpha1.AdoptableAnnotation:                       "true",
					v1alpha1.DiscoveredInstanceTypeAnnotation:          instanceType,
				},
			},
			Spec: clusterv1.MachineDeploymentSpec{
				ClusterName: prod.Name, Replicas: &replicas,
				Template: clusterv1.MachineTemplateSpec{
					ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{clusterv1.ClusterNameLabel: prod.Name, clusterv1.MachineDeploymentNameLabel: name}},
					Spec:       clusterv1.MachineSpec{ClusterName: prod.Name, FailureDomain: zones[0]},
				},
			},
		})
	}
}

// ownAreNodes waits until the given number of Machines have a Node.
func ownAreNodes(machines int) func(*simulation) bool {
	return func(w *simulation) bool {
		return lo.CountBy(w.machines(), func(m *clusterv1.Machine) bool { return m.Status.NodeRef.IsDefined() }) == machines
	}
}

// areOwn remembers the Machines that existed before the adoption: they must not change.
func areOwn(w *simulation) {
	w.own = map[string]bool{}
	for _, m := range w.machines() {
		w.own[m.Name] = true
	}
}
