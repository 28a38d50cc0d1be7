// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	operator "github.com/karpenter-capi/karpenter-capi/internal/cloudprovider"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

const (
	poolName, templateName = "pool", "general"
	// podCPU lets two Pods fit on a Node with 4 CPUs.
	podCPU, podsOfNode = "1500m", 2
)

var served = types.NamespacedName{Namespace: "fleet", Name: "served"}

// market is what a catalog offers of one capacity type: some instance types of one size, in some zones. Prices rise from 0.1 to
// 0.116 with instance type and zone.
type market struct {
	capacityType v1alpha1.CapacityType
	types, zones int
	// spread is spec.spread.maxPriceIncreasePercent; nil for no spec.spread.
	spread *int32
}

func (m market) offerings() int { return m.types * m.zones }

// price returns the price of an offering.
func (m market) price(instanceType, zone int) v1alpha1.Decimal {
	at := float64(instanceType*m.zones+zone) / float64(m.offerings()-1)
	return v1alpha1.Decimal(fmt.Sprintf("%.4f", 0.1*(1+0.16*at)))
}

func (m market) catalog() *v1alpha1.InstanceTypeCatalog {
	capacity := map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")}
	var listed []v1alpha1.InstanceType
	for i := range m.types {
		instanceType := v1alpha1.InstanceType{Name: fmt.Sprintf("type-%02d", i), Capacity: capacity}
		for j := range m.zones {
			instanceType.Offerings = append(instanceType.Offerings, v1alpha1.Offering{
				Zones: []v1alpha1.Zone{v1alpha1.Zone(fmt.Sprintf("zone-%d", j))}, CapacityType: m.capacityType, Price: m.price(i, j),
			})
		}
		listed = append(listed, instanceType)
	}
	return fixture.CatalogOf(listed...)
}

func (m market) template(listed *v1alpha1.InstanceTypeCatalog) *v1alpha1.KarpenterMachineTemplate {
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: templateName, UID: "1", Generation: 1}}
	template.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "workers"}
	template.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: listed.Name}}
	if m.spread != nil {
		template.Spec.Spread = []v1alpha1.Spread{{CapacityType: v1alpha1.SpreadCapacityType(m.capacityType), MaxPriceIncreasePercent: m.spread}}
	}
	for _, condition := range []string{v1alpha1.ConditionClusterReady, v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionVersionReady, v1alpha1.ConditionInstanceTypesReady} {
		template.StatusConditions().SetTrue(condition)
	}
	template.Status.AcceptedHash = "accepted"
	return template
}

// nodePool returns a NodePool of which core may consolidate all Nodes.
func (m market) nodePool() *karpv1.NodePool {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: poolName, UID: "2"}}
	pool.Spec.Template.Spec = karpv1.NodeClaimTemplateSpec{
		NodeClassRef: &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: templateName},
		Requirements: []karpv1.NodeSelectorRequirementWithMinValues{{
			Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{string(m.capacityType)},
		}},
		ExpireAfter: karpv1.MustParseNillableDuration("Never"),
	}
	pool.Spec.Disruption = karpv1.Disruption{
		ConsolidationPolicy: karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized,
		ConsolidateAfter:    karpv1.MustParseNillableDuration("0s"),
		Budgets:             []karpv1.Budget{{Nodes: "100%"}},
	}
	pool.StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
	return pool
}

func object(apiVersion, kind, namespace, name string, labels map[string]string) client.Object {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

// world is a cluster with core's provisioner and consolidation, and the operator's CloudProvider.
type world struct {
	*testing.T
	ctx      context.Context
	client   client.Client
	operator *operator.CloudProvider
	// core is the CloudProvider with which core schedules and consolidates.
	core        cloudprovider.CloudProvider
	cluster     *state.Cluster
	provisioner *provisioning.Provisioner
	pods        int
}

// newWorld returns a cluster without Nodes. See can change what core sees.
func newWorld(t *testing.T, m market, see func(cloudprovider.CloudProvider) cloudprovider.CloudProvider) *world {
	t.Helper()
	listed := m.catalog()
	api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(listed, m.template(listed), m.nodePool(),
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "awsmachinetemplates.infrastructure.cluster.x-k8s.io", map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}),
		object("infrastructure.cluster.x-k8s.io/v1beta2", "AWSMachineTemplate", served.Namespace, "workers", nil)).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name} }).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		Build()
	var created atomic.Int64
	w := &world{T: t, client: interceptor.NewClient(api, interceptor.Funcs{
		// As the API server, which the fake client does not do.
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			number := created.Add(1)
			if o.GetName() == "" {
				o.SetName(fmt.Sprintf("%s%05d", o.GetGenerateName(), number))
			}
			o.SetUID(types.UID(fmt.Sprintf("uid-%d", number)))
			return c.Create(ctx, o, opts...)
		},
	})}
	w.ctx = options.ToContext(t.Context(), &options.Options{
		IgnoreDRARequests: true, CPURequests: 1000, MinValuesPolicy: options.MinValuesPolicyStrict, PreferencePolicy: options.PreferencePolicyRespect,
		FeatureGates: options.FeatureGates{SpotToSpotConsolidation: true, ReservedCapacity: true},
	})
	both := fixture.Cluster{Client: w.client}
	clusters := &clients.Clusters{Cluster: served, Workload: both, Management: both, Allowed: fixture.Allowed}
	w.operator = operator.New(clusters, catalog.New(clusters), clock.RealClock{})
	w.core = w.operator
	if see != nil {
		w.core = see(w.operator)
	}
	w.cluster = state.NewCluster(clock.RealClock{}, w.client, w.core)
	w.provisioner = provisioning.NewProvisioner(w.client, silent{}, w.core, w.cluster, clock.RealClock{}, nil, nil)
	return w
}

// silent drops events.
type silent struct{}

func (silent) Publish(...events.Event) {}

// must fails the test if there is an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// run creates Pods, and lets core create Nodes for them.
func (w *world) run(count int) {
	w.Helper()
	for range count {
		w.pods++
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%04d", w.pods)}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(podCPU)}}}}
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		w.must(w.client.Create(w.ctx, pod))
	}
	results, err := w.provisioner.Schedule(w.ctx)
	w.must(err)
	for pod, err := range results.PodErrors {
		w.Fatalf("Pod %s: %v", pod.Name, err)
	}
	names, err := w.provisioner.CreateNodeClaims(w.ctx, results.NewNodeClaims, provisioning.WithReason("provisioned"))
	w.must(err)
	for _, node := range results.ExistingNodes {
		w.bind(node.Node.Name, node.Pods)
	}
	// All claims are launched before any Node joins, as in a burst.
	for _, name := range names {
		w.launch(name)
	}
	for i, name := range names {
		w.join(name)
		w.bind(name, results.NewNodeClaims[i].Pods)
	}
}

// launch lets the operator choose an offering for a claim, and stores what core stores of that.
func (w *world) launch(name string) {
	w.Helper()
	claim := w.claim(name)
	created, err := w.operator.Create(w.ctx, claim.DeepCopy())
	w.must(err)
	for key, value := range created.Labels {
		claim.Labels[key] = value
	}
	claim.Annotations, claim.Status = created.Annotations, created.Status
	claim.Status.ProviderID, claim.Status.NodeName = "sim://"+name, name
	for _, condition := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized, karpv1.ConditionTypeConsolidatable} {
		claim.StatusConditions().SetTrue(condition)
	}
	w.must(w.client.Update(w.ctx, claim))
}

// join creates the Node of a claim, which core regards as initialized.
func (w *world) join(name string) {
	w.Helper()
	claim := w.claim(name)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeInitializedLabelKey: "true",
	}}}
	for key, value := range claim.Labels {
		node.Labels[key] = value
	}
	node.Spec.ProviderID = claim.Status.ProviderID
	node.Status.Capacity, node.Status.Allocatable = claim.Status.Capacity, claim.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.must(w.client.Create(w.ctx, node))
	w.cluster.UpdateNodeClaim(claim)
	w.must(w.cluster.UpdateNode(w.ctx, node))
}

// bind lets Pods run on a Node.
func (w *world) bind(node string, pods []*corev1.Pod) {
	w.Helper()
	for _, pod := range pods {
		bound := &corev1.Pod{}
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), bound))
		bound.Spec.NodeName = node
		w.must(w.client.Update(w.ctx, bound))
		bound.Status.Phase, bound.Status.Conditions = corev1.PodRunning, nil
		w.must(w.client.Status().Update(w.ctx, bound))
		w.must(w.cluster.UpdatePod(w.ctx, bound))
	}
}

func (w *world) claim(name string) *karpv1.NodeClaim {
	w.Helper()
	claim := &karpv1.NodeClaim{}
	w.must(w.client.Get(w.ctx, types.NamespacedName{Name: name}, claim))
	return claim
}

// claims returns all claims.
func (w *world) claims() []karpv1.NodeClaim {
	w.Helper()
	list := &karpv1.NodeClaimList{}
	w.must(w.client.List(w.ctx, list))
	return list.Items
}

// end ends a spot pool: all its Nodes, with their Pods. The offering is marked as the operator does, and other Pods are created
// for those that are lost.
func (w *world) end(pool catalog.Key) (lost int) {
	w.Helper()
	template := &v1alpha1.KarpenterMachineTemplate{}
	w.must(w.client.Get(w.ctx, types.NamespacedName{Name: templateName}, template))
	template.Status.UnavailableOfferings = catalog.MarkUnavailable(template.Status.UnavailableOfferings, pool.Unavailable("Interrupted", "the spot pool has ended"), time.Now())
	w.must(w.client.Update(w.ctx, template))
	for _, claim := range w.claims() {
		if catalog.KeyOf(&claim) != pool {
			continue
		}
		pods := &corev1.PodList{}
		w.must(w.client.List(w.ctx, pods, client.MatchingFields{"spec.nodeName": claim.Name}))
		for i := range pods.Items {
			w.must(w.client.Delete(w.ctx, &pods.Items[i]))
			w.cluster.DeletePod(client.ObjectKeyFromObject(&pods.Items[i]))
		}
		lost += len(pods.Items)
		w.must(w.client.Delete(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Name}}))
		w.must(w.client.Delete(w.ctx, &claim))
		w.cluster.DeleteNode(claim.Name)
		w.cluster.DeleteNodeClaim(claim.Name)
	}
	w.run(lost)
	return lost
}
