// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

const resourceName = "general-small"

// now is the time of the reconciler. All objects are older.
var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// testCluster is a management cluster and a workload cluster with one template, and the MachineDeployment
// of one of its offerings.
type testCluster struct {
	// api has the objects as the API server has them.
	api client.WithWatch
	// machines are the Machines as the cache has them; nil if the cache is up to date.
	machines []clusterv1.Machine
	// patch answers the patches of Machines; nil if the API server answers them.
	patch func(machine string, do func() error) error
	// reads counts the read requests of the reconciler to the API server.
	reads int
}

// newTemplate returns a template that is Ready, with the instance types of newCatalog.
func newTemplate() *v1alpha1.KarpenterMachineTemplate {
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "general", Generation: 1}}
	template.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestMachineTemplate", Name: "workers"}
	template.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: newCatalog().Name}}
	for _, condition := range []string{v1alpha1.ConditionClusterReady, v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionVersionReady, v1alpha1.ConditionInstanceTypesReady} {
		template.StatusConditions().SetTrue(condition)
	}
	template.Status.AcceptedHash = "accepted" // the management cluster has accepted all dry runs
	return template
}

// newCatalog returns a catalog with a small and a large instance type.
func newCatalog() *v1alpha1.InstanceTypeCatalog {
	listed := fixture.CatalogOf()
	for name, price := range map[string]v1alpha1.Decimal{"small": "0.2", "large": "0.8"} {
		listed.Spec.InstanceTypes = append(listed.Spec.InstanceTypes, v1alpha1.InstanceType{
			Name:      name,
			Capacity:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")},
			Offerings: []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, CapacityType: karpv1.CapacityTypeOnDemand, Price: price}},
		})
	}
	return listed
}

// bases returns the base template and its CustomResourceDefinition.
func bases() []client.Object {
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("testmachinetemplates.infrastructure.cluster.x-k8s.io")
	definition.SetLabels(map[string]string{clusterv1.GroupVersion.String(): "v1"})
	base := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	base.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1")
	base.SetKind("TestMachineTemplate")
	base.SetNamespace("fleet")
	base.SetName("workers")
	return []client.Object{definition, base}
}

func newWorld(objects ...client.Object) *testCluster {
	template := newTemplate()
	resource := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: resourceName, Labels: labels()},
		Spec:       clusterv1.MachineDeploymentSpec{ClusterName: "served", Replicas: new(int32(9))},
	}
	served := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "served"}}
	return &testCluster{api: fake.NewClientBuilder().WithScheme(scheme.Scheme).
		WithObjects(append(objects, template, newCatalog(), resource, served)...).
		WithObjects(bases()...).
		WithStatusSubresource(&karpv1.NodeClaim{}, template).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimResourceField, func(o client.Object) []string {
			return []string{o.GetAnnotations()[v1alpha1.ScalableResourceAnnotation]}
		}).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimProviderIDField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Status.ProviderID}
		}).
		WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
		}).
		WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(o client.Object) []string { return []string{string(lifecycle.ClaimUID(o))} }).
		WithIndex(&clusterv1.Machine{}, clients.ResourceField, func(o client.Object) []string { return []string{clients.ResourceOf(o)} }).
		WithIndex(&clusterv1.MachineSet{}, clients.ResourceField, func(o client.Object) []string { return []string{clients.ResourceOf(o)} }).
		Build()}
}

// newProcess returns the reconciler of a process that has just started.
func (w *testCluster) newProcess() *Reconciler {
	cached := interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if machine, is := object.(*clusterv1.Machine); is && w.machines != nil {
				for i := range w.machines {
					if w.machines[i].Name == key.Name {
						w.machines[i].DeepCopyInto(machine)
						return nil
					}
				}
				return apierrors.NewNotFound(machinesResource, key.Name)
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if machines, is := list.(*clusterv1.MachineList); is && w.machines != nil {
				(&clusterv1.MachineList{Items: w.machines}).DeepCopyInto(machines)
				return nil
			}
			return c.List(ctx, list, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			do := func() error { return c.Patch(ctx, object, patch, options...) }
			if _, is := object.(*clusterv1.Machine); is && w.patch != nil {
				return w.patch(object.GetName(), do)
			}
			return do()
		},
	})
	live := interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			w.reads++
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			w.reads++
			return c.List(ctx, list, options...)
		},
	})
	both := fixture.Cluster{Client: cached, Live: live}
	clusters := &clients.Clusters{Cluster: types.NamespacedName{Namespace: "fleet", Name: "served"}, Workload: both, Management: both}
	return newReconciler(clusters, catalog.New(clusters), silent{}, clocktesting.NewFakePassiveClock(now))
}

func reconcileOnce(t *testing.T, r *Reconciler) error {
	t.Helper()
	return reconcileNamed(t, r, resourceName)
}

// reconcileNamed reconciles a resource once, and then writes each link that it has asked for.
func reconcileNamed(t *testing.T, r *Reconciler, resource string) error {
	t.Helper()
	_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resource}})
	for _, request := range r.links.Open(resource) {
		_, linked := r.links.Reconcile(t.Context(), request)
		err = errors.Join(err, linked)
	}
	return err
}

// knowLinked lets a process read the Machines that are linked at its start, so that it does not read them later.
func knowLinked(t *testing.T, r *Reconciler) {
	t.Helper()
	if _, err := r.links.Newest(t.Context(), resourceName, nil); err != nil {
		t.Fatal(err)
	}
}

// claim returns a NodeClaim as the API server has it.
func (w *testCluster) claim(t *testing.T, name string) *karpv1.NodeClaim {
	t.Helper()
	claim := &karpv1.NodeClaim{}
	if err := w.api.Get(t.Context(), types.NamespacedName{Name: name}, claim); err != nil {
		t.Fatal(err)
	}
	return claim
}

// machine returns a Machine as the API server has it.
func (w *testCluster) machine(t *testing.T, name string) *clusterv1.Machine {
	t.Helper()
	machine := &clusterv1.Machine{}
	if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "fleet", Name: name}, machine); err != nil {
		t.Fatal(err)
	}
	return machine
}

// marks returns the offerings that are marked as unavailable.
func (w *testCluster) marks(t *testing.T) []v1alpha1.UnavailableOffering {
	t.Helper()
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := w.api.Get(t.Context(), types.NamespacedName{Name: "general"}, template); err != nil {
		t.Fatal(err)
	}
	return template.Status.UnavailableOfferings
}

// setTemplate changes the status of the template.
func (w *testCluster) setTemplate(t *testing.T, change func(*v1alpha1.KarpenterMachineTemplate)) {
	t.Helper()
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := w.api.Get(t.Context(), types.NamespacedName{Name: "general"}, template); err != nil {
		t.Fatal(err)
	}
	change(template)
	if err := w.api.Status().Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
}

// setMachine changes a Machine in the API server.
func (w *testCluster) setMachine(t *testing.T, name string, change func(*clusterv1.Machine)) {
	t.Helper()
	machine := w.machine(t, name)
	change(machine)
	if err := w.api.Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
}

// deleteCluster deletes the Cluster, which stays until what it has no longer exists.
func (w *testCluster) deleteCluster(t *testing.T) {
	t.Helper()
	cluster := &clusterv1.Cluster{}
	if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "served"}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Finalizers = []string{clusterv1.ClusterFinalizer}
	if err := w.api.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

func labels() map[string]string {
	return map[string]string{
		clusterv1.ClusterNameLabel: "served", v1alpha1.TemplateLabel: "general",
		v1alpha1.InstanceTypeLabel: "small", v1alpha1.ZoneLabel: "a", v1alpha1.CapacityTypeLabel: karpv1.CapacityTypeOnDemand,
	}
}

// launched returns a claim that has waited for a Machine for a minute. Its UID is its name.
func launched(name string, change ...func(*karpv1.NodeClaim)) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(now.Add(-time.Minute)), Finalizers: []string{"karpenter.sh/termination"},
			Labels: map[string]string{
				karpv1.NodePoolLabelKey: "pool", corev1.LabelInstanceTypeStable: "small",
				corev1.LabelTopologyZone: "a", karpv1.CapacityTypeLabelKey: karpv1.CapacityTypeOnDemand,
			},
			Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: resourceName},
		},
		Spec:   karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}},
		Status: karpv1.NodeClaimStatus{ProviderID: planner.ProvisionalID(types.UID(name))},
	}
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	for _, f := range change {
		f(claim)
	}
	return claim
}

// machine returns a Machine of the MachineDeployment that was created 30 seconds before now.
func machine(name string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(now.Add(-30 * time.Second)),
		Finalizers: []string{clusterv1.MachineFinalizer}, Labels: labels(),
	}}
	machine.Labels[clusterv1.MachineDeploymentNameLabel] = resourceName
	for _, f := range change {
		f(machine)
	}
	return machine
}

func linkedTo(claim string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		m.Labels[v1alpha1.NodeClaimUIDLabel] = claim
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[v1alpha1.NodeClaimAnnotation] = claim
	}
}

func withID(id string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Spec.ProviderID = id }
}

// silent drops events.
type silent struct{}

func (silent) Publish(...events.Event) {}
