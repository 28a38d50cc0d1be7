// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/settings"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
)

// indexed returns clusters with the indexes of the caches.
func indexed(objects ...client.Object) *operator.Clusters {
	ofResource := func(o client.Object) []string { return []string{operator.ResourceOf(o)} }
	both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithIndex(&clusterv1.MachineSet{}, operator.ResourceField, ofResource).
		WithIndex(&clusterv1.Machine{}, operator.ResourceField, ofResource).
		WithIndex(&karpv1.NodeClaim{}, operator.NodeClaimResourceField, func(o client.Object) []string {
			return []string{o.GetAnnotations()[v1alpha1.ScalableResourceAnnotation]}
		}).
		WithIndex(&karpv1.NodeClaim{}, operator.NodeClaimTemplateField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
		}).Build()}
	return &operator.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
}

// What a snapshot has of the Machines that carry the name of its resource.
func TestLoadReadsMachines(t *testing.T) {
	type machine = *clusterv1.Machine
	named := func(name string, change ...func(machine)) machine {
		m := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
		m.Name, m.UID = name, types.UID(name)
		for _, f := range change {
			f(m)
		}
		return m
	}
	generated := func(m machine) { m.Labels[v1alpha1.TemplateLabel] = "general" }
	ofPool := func(m machine) {
		delete(m.Labels, clusterv1.MachineDeploymentNameLabel)
		m.Labels[clusterv1.MachinePoolNameLabel] = "general"
	}
	elsewhere := func(m machine) { m.Labels[clusterv1.MachineDeploymentNameLabel] = "other" }
	failed := func(m machine) {
		fixture.WithCondition(m, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "InsufficientInstanceCapacity", "no capacity", fixture.Noon)
	}
	old := func(m machine) { m.CreationTimestamp = metav1.NewTime(fixture.Noon.Add(-29 * time.Second)) }
	for name, tc := range map[string]struct {
		gone     bool // no resource exists
		machines []machine
		leftOut  types.UID
		want     []string
		unfit    []string // those that the plan does not give to a claim
		stalled  []string
	}{
		"all of the resource":              {machines: []machine{named("a"), named("b")}, want: []string{"a", "b"}, stalled: []string{"a", "b"}},
		"one of another resource":          {machines: []machine{named("a"), named("b", elsewhere)}, want: []string{"a"}, stalled: []string{"a"}},
		"one of a MachinePool of the name": {machines: []machine{named("a"), named("b", ofPool)}, want: []string{"a"}, stalled: []string{"a"}},
		"one whose link is being written":  {machines: []machine{named("a"), named("b")}, leftOut: "b", want: []string{"a"}, stalled: []string{"a"}},
		"one that has failed":              {machines: []machine{named("a"), named("b", failed)}, want: []string{"a", "b"}, unfit: []string{"b"}, stalled: []string{"a"}},
		"one that is too young to stall":   {machines: []machine{named("a", old), named("b")}, want: []string{"a", "b"}, stalled: []string{"b"}},
		"one that outlives its resource":   {gone: true, machines: []machine{named("a", generated)}, want: []string{"a"}, stalled: []string{"a"}},
		"one of a user, without resource":  {gone: true, machines: []machine{named("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}}
			if !tc.gone {
				resource := deployment(2)
				resource.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
				objects = append(objects, resource)
			}
			for _, m := range tc.machines {
				objects = append(objects, m)
			}
			clusters := indexed(objects...)
			snap, err := Load(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, nil, sets.New(tc.leftOut))
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Sorted(maps.Keys(snap.Machines))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Machines (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.stalled, slices.Sorted(maps.Keys(snap.machineStalls))); diff != "" {
				t.Errorf("stalled (-want +got):\n%s", diff)
			}
			var unfit []string
			for _, m := range snap.state().Machines {
				if m.Unfit {
					unfit = append(unfit, m.Name)
				}
			}
			if diff := cmp.Diff(tc.unfit, unfit); diff != "" {
				t.Errorf("unfit (-want +got):\n%s", diff)
			}
		})
	}
}

// The template, and with it the timeouts, is known by the resource, by a claim, or by the last Machine.
func TestLoadReadsTheTemplate(t *testing.T) {
	template := fixture.Template()
	template.Spec.LaunchTimeout = &metav1.Duration{Duration: 7 * time.Minute}
	resource := deployment(1)
	resource.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
	claim := fixture.Claim(time.Minute)
	claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "general"}
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "general"}
	machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
	machine.Labels[v1alpha1.TemplateLabel] = "general"
	for name, tc := range map[string]struct {
		object client.Object
		want   time.Duration
	}{
		"its resource": {resource, 7 * time.Minute},
		"its claim":    {claim, 7 * time.Minute},
		"its Machine":  {machine, 7 * time.Minute},
		"nothing":      {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, settings.Of(nil).LaunchTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			clusters := indexed(cluster, template.DeepCopy(), tc.object)
			snap, err := Load(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if snap.Settings.LaunchTimeout != tc.want {
				t.Errorf("got a launchTimeout of %s, want %s", snap.Settings.LaunchTimeout, tc.want)
			}
		})
	}
}

// No Pod can be on the Node of a spare Machine that Karpenter has not registered, so the Machine can still
// serve any claim. That is certain only while the Node has the taint, or the operator adopted the resource.
func TestIsUnregistered(t *testing.T) {
	linked := func(m *clusterv1.Machine) { m.Labels[v1alpha1.NodeClaimUIDLabel] = "c" }
	noNode := func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "" }
	adopted := scalable.New(deployment(1))
	adopted.SetAnnotations(map[string]string{v1alpha1.AdoptedAnnotation: "x"})
	generated := scalable.New(deployment(1))
	tainted := []corev1.Taint{karpv1.UnregisteredNoExecuteTaint}
	registered := map[string]string{karpv1.NodeRegisteredLabelKey: "true"}
	for name, tc := range map[string]struct {
		machine  func(*clusterv1.Machine)
		taints   []corev1.Taint
		labels   map[string]string
		missing  bool
		resource *scalable.Resource
		want     bool
	}{
		"the Node has the taint":                     {taints: tainted, resource: generated, want: true},
		"the same, and the resource no longer is":    {taints: tainted, want: true},
		"the Node has no taint":                      {resource: generated},
		"the Node has another taint":                 {taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoExecute}}, resource: generated},
		"the Machine serves a claim":                 {machine: linked, taints: tainted, resource: generated},
		"the Machine has no Node":                    {machine: noNode, taints: tainted, resource: generated},
		"the Node does not exist":                    {missing: true, resource: generated},
		"adopted, without taint":                     {resource: adopted, want: true},
		"adopted, without taint, and registered":     {labels: registered, resource: adopted},
		"adopted, and registered but for the taint":  {labels: registered, taints: tainted, resource: adopted, want: true},
		"no resource, without taint, not registered": {},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
			machine.Status.NodeRef.Name = "n"
			if tc.machine != nil {
				tc.machine(machine)
			}
			var objects []client.Object
			if !tc.missing {
				objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: tc.labels}, Spec: corev1.NodeSpec{Taints: tc.taints}})
			}
			got, err := isUnregistered(t.Context(), fixture.Clusters(objects...).Workload.GetClient(), machine, tc.resource)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// While a provider may not have recovered from a disturbance, its pool is unsettled, and the next reconcile is due
// when it has.
func TestLoadUnsettledPool(t *testing.T) {
	clock := clocktesting.NewFakeClock(fixture.Noon)
	clusters := fixture.Clusters(fixture.PoolInfrastructure(t, `{infrastructureMachineKind: AzureMachinePoolMachine}`))
	clusters.Timings = operator.ProductionTimings()
	clusters.Timings.Recovery, clusters.Timings.RecoveryLimit = 5*time.Second, time.Minute
	clusters.ToManagement = connection.New(connection.Management, "https://m", clock, clock)
	clusters.ToManagement.Filled()
	for _, want := range []time.Duration{5 * time.Second, time.Second, 0} {
		snap := &Snapshot{Now: clock.Now(), Resource: scalable.New(fixture.MachinePool(nil)), Settings: durations, instanceGone: map[string]bool{}}
		if err := snap.loadPool(t.Context(), clusters); err != nil {
			t.Fatal(err)
		}
		if unsettled := snap.state().Scaling.(planner.Pool).Unsettled; unsettled != (want > 0) || snap.Unsettled != unsettled || snap.DueIn() != want {
			t.Errorf("unsettled: %t and %t, due in %s, want %s", unsettled, snap.Unsettled, snap.DueIn(), want)
		}
		clock.Step(min(4*time.Second, max(want-time.Second, time.Second)))
	}
}

// A claim that has its Machine keeps it when the limit is lowered, and none is planned for one that exceeds it.
func TestLoadReadsLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		limit    *int32
		replicas int32
		waits    []string
	}{
		"no limit":                             {replicas: 3, waits: []string{"older", "younger"}},
		"as many as claims":                    {limit: new(int32(3)), replicas: 3, waits: []string{"older", "younger"}},
		"too few for the youngest claim":       {limit: new(int32(2)), replicas: 2, waits: []string{"older"}},
		"less than there are Machines":         {limit: new(int32(0)), replicas: 1},
		"the Machine is of the youngest claim": {limit: new(int32(2)), replicas: 3, waits: []string{"older", "younger"}},
	} {
		t.Run(name, func(t *testing.T) {
			ages := map[string]time.Duration{"has": 3 * time.Minute, "older": 2 * time.Minute, "younger": time.Minute}
			if name == "the Machine is of the youngest claim" {
				ages["has"] = 0
			}
			template := fixture.Template()
			template.Spec.MaxMachines = tc.limit
			resource := deployment(1)
			resource.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
			machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
			machine.Labels[v1alpha1.NodeClaimUIDLabel] = "has"
			objects := []client.Object{&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}, template, resource, machine}
			var claims []*karpv1.NodeClaim
			for _, name := range slices.Sorted(maps.Keys(ages)) {
				claim := fixture.Claim(ages[name])
				claim.Name, claim.UID = name, types.UID(name)
				claim.Labels = map[string]string{corev1.LabelInstanceTypeStable: fixture.Spot.InstanceType, corev1.LabelTopologyZone: fixture.Spot.Zone, karpv1.CapacityTypeLabelKey: fixture.Spot.CapacityType}
				claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "general"}
				claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "general"}
				claims, objects = append(claims, claim), append(objects, claim)
			}
			clusters := indexed(objects...)
			snap, err := Load(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			var waits []string
			for _, claim := range claims {
				if snap.Waits(claim) {
					waits = append(waits, claim.Name)
				}
			}
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Errorf("claims that wait for a Machine (-want +got):\n%s", diff)
			}
			if snap.Plan.Replicas != tc.replicas || snap.Plan.Served["has"] != "m" {
				t.Errorf("got %d replicas, want %d; served: %v", snap.Plan.Replicas, tc.replicas, snap.Plan.Served)
			}
			if failed := snap.Failure(claims[0]); failed != nil {
				t.Errorf("the claim that has its Machine fails: %+v", failed)
			}
			failed := snap.Failure(claims[len(claims)-1])
			if exceeds := len(tc.waits) < 2; (failed != nil && failed.Kind == LimitReached) != exceeds {
				t.Errorf("failure of the youngest claim: got %+v, want that it exceeds the limit: %t", failed, exceeds)
			}
		})
	}
}

// Before a provider acts on a Machine, the bootstrap provider acts on its configuration.
func TestMachineStallOfBootstrap(t *testing.T) {
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AzureMachinePool", Name: "pool"} // a kind of the fixture
	for name, tc := range map[string]struct {
		config string // status of the configuration
		ready  metav1.ConditionStatus
		want   bool
	}{
		"nothing has acted":      {config: `{}`, ready: metav1.ConditionFalse, want: true},
		"the provider has acted": {config: `{conditions: []}`, ready: metav1.ConditionFalse},
		"it is ready":            {config: `{}`, ready: metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.WithCondition(fixture.OfPool(fixture.Machine(time.Hour)), clusterv1.MachineBootstrapConfigReadyCondition, tc.ready, "x", "", fixture.Noon)
			machine.Spec.Bootstrap.ConfigRef = ref
			instance := fixture.Instance()
			instance.SetFinalizers([]string{"x"})
			got := MachineStall(t.Context(), fixture.Clusters(instance, fixture.PoolInfrastructure(t, tc.config)), machine)
			if (got != nil) != tc.want {
				t.Fatalf("got %+v, want a stall: %t", got, tc.want)
			}
			if got != nil && got.Message != "the bootstrap provider has not acted on AzureMachinePool pool of Machine clusters/m: check that it runs" {
				t.Errorf("got %q", got.Message)
			}
		})
	}
}
