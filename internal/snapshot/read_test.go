// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/settings"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// indexed returns clusters with the indexes of the caches.
func indexed(objects ...client.Object) *clients.Clusters {
	ofResource := func(o client.Object) []string { return []string{clients.ResourceOf(o)} }
	both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithIndex(&clusterv1.MachineSet{}, clients.ResourceField, ofResource).
		WithIndex(&clusterv1.Machine{}, clients.ResourceField, ofResource).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimResourceField, func(o client.Object) []string {
			return []string{o.GetAnnotations()[v1alpha1.ScalableResourceAnnotation]}
		}).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
		}).Build()}
	return &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
}

// What a snapshot has of the Machines that carry the name of its resource.
func TestReadMachines(t *testing.T) {
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
	enough := func(m machine) { m.CreationTimestamp = metav1.NewTime(fixture.Noon.Add(-30 * time.Second)) }
	for name, tc := range map[string]struct {
		gone     bool // no resource exists
		machines []machine
		want     []string
		unfit    []string // those that the plan does not give to a claim
		stalled  []string
	}{
		"all of the resource":              {machines: []machine{named("a"), named("b")}, want: []string{"a", "b"}, stalled: []string{"a", "b"}},
		"one of another resource":          {machines: []machine{named("a"), named("b", elsewhere)}, want: []string{"a"}, stalled: []string{"a"}},
		"one of a MachinePool of the name": {machines: []machine{named("a"), named("b", ofPool)}, want: []string{"a"}, stalled: []string{"a"}},
		"one that has failed":              {machines: []machine{named("a"), named("b", failed)}, want: []string{"a", "b"}, unfit: []string{"b"}, stalled: []string{"a"}},
		"one that is just old enough":      {machines: []machine{named("a", enough)}, want: []string{"a"}, stalled: []string{"a"}},
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
			snap, err := Read(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, Known{})
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Sorted(maps.Keys(snap.Machines))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Machines (-want +got):\n%s", diff)
			}
			plan := planner.Decide(&snap.State)
			var stalled, unfit []string
			for _, m := range snap.State.Machines {
				if m.Stall != (planner.Stall{}) {
					stalled = append(stalled, m.Name)
				}
				if isUnfit(plan, m.Name) {
					unfit = append(unfit, m.Name)
				}
			}
			slices.Sort(stalled)
			if diff := cmp.Diff(tc.stalled, stalled); diff != "" {
				t.Errorf("stalled (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.unfit, unfit); diff != "" {
				t.Errorf("unfit (-want +got):\n%s", diff)
			}
		})
	}
}

// The template, and with it the timeouts, is known by the resource, by a claim, or by the last Machine.
func TestReadTemplate(t *testing.T) {
	template := fixture.Template()
	template.Spec.LaunchTimeoutSeconds = new(int32(420))
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
			snap, err := Read(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, Known{})
			if err != nil {
				t.Fatal(err)
			}
			if got := snap.Settings.LaunchTimeout; got != tc.want || snap.State.Durations.LaunchTimeout != got {
				t.Errorf("got a LaunchTimeout of %s, and in the state of %s, want %s", got, snap.State.Durations.LaunchTimeout, tc.want)
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
func TestReadUnsettledPool(t *testing.T) {
	clock := clocktesting.NewFakeClock(fixture.Noon)
	clusters := fixture.Clusters(fixture.PoolInfrastructure(t, `{infrastructureMachineKind: AzureMachinePoolMachine}`))
	clusters.Timings = clients.ProductionTimings()
	clusters.Timings.Recovery, clusters.Timings.RecoveryLimit = 5*time.Second, time.Minute
	clusters.ToManagement = connection.New(connection.Management, "https://m", clock, clock)
	clusters.ToManagement.Filled()
	for _, want := range []time.Duration{5 * time.Second, time.Second, 0} {
		snap := snapshotOf(t, scalable.New(fixture.MachinePool(nil)), nil)
		snap.State.Now = clock.Now()
		if err := snap.readPool(t.Context(), clusters); err != nil {
			t.Fatal(err)
		}
		if unsettled, due := snap.State.Unsettled(), planner.Decide(&snap.State).Due; unsettled != (want > 0) || due.In != want || want > 0 && due.Why != planner.NotSettled {
			t.Errorf("unsettled: %t, due in %s because %q, want %s", unsettled, due.In, due.Why, want)
		}
		clock.Step(min(4*time.Second, max(want-time.Second, time.Second)))
	}
}

// A claim that has its Machine keeps it when the limit is lowered, and none is planned for one that exceeds it.
func TestReadLimits(t *testing.T) {
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
			snap, err := Read(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, Known{})
			if err != nil {
				t.Fatal(err)
			}
			plan := planner.Decide(&snap.State)
			var waits []string
			for _, claim := range claims {
				if plan.Waiting.Has(claim.UID) {
					waits = append(waits, claim.Name)
				}
			}
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Errorf("claims that wait for a Machine (-want +got):\n%s", diff)
			}
			if plan.Replicas != tc.replicas || plan.Served["has"] != "m" {
				t.Errorf("got %d replicas, want %d; served: %v", plan.Replicas, tc.replicas, plan.Served)
			}
			if failed := plan.Outcomes[claims[0].UID].Failure; failed != (failure.Failure{}) {
				t.Errorf("the claim that has its Machine fails: %+v", failed)
			}
			failed := plan.Outcomes[claims[len(claims)-1].UID].Failure
			if exceeds := len(tc.waits) < 2; (failed.Kind == planner.LimitReached) != exceeds {
				t.Errorf("failure of the youngest claim: got %+v, want that it exceeds the limit: %t", failed, exceeds)
			}
			for _, limit := range []string{"capacityFrom", "reservation", "maxMachines"} {
				if failed.Kind == planner.LimitReached && !strings.Contains(failed.Message, limit) {
					t.Errorf("the failure %q does not name %s", failed.Message, limit)
				}
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
			got := stallOfMachine(t.Context(), fixture.Clusters(instance, fixture.PoolInfrastructure(t, tc.config)), machine)
			if (got != planner.Stall{}) != tc.want {
				t.Fatalf("got %+v, want a stall: %t", got, tc.want)
			}
			if tc.want && got.Message != "the bootstrap provider has not acted on AzureMachinePool pool of Machine clusters/m: check that it runs" {
				t.Errorf("got %q", got.Message)
			}
		})
	}
}

// While a claim's resource does not exist, the claim reports that, and its template decides of which kind it will be.
func TestReadWithoutResource(t *testing.T) {
	pools := fixture.PoolTemplate("AzureMachinePool")
	pools.Name = "pools"
	for template, tc := range map[string]struct {
		stall    string
		replicas int32
	}{
		"general": {stall: "no MachineDeployment general exists yet: see the events of the NodeClaim", replicas: 1},
		"pools":   {stall: "no MachinePool general exists yet: see the events of the NodeClaim"}, // which is not ready
	} {
		t.Run(template, func(t *testing.T) {
			claim := fixture.Claim(time.Minute)
			claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "general"}
			claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: template}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			clusters := indexed(cluster, fixture.Template(), pools.DeepCopy(), claim)
			snap, err := Read(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, Known{})
			if err != nil {
				t.Fatal(err)
			}
			plan := planner.Decide(&snap.State)
			if stall := plan.Outcomes[claim.UID].Stall; stall.Message != tc.stall {
				t.Errorf("got %+v, want %q", stall, tc.stall)
			}
			if plan.Replicas != tc.replicas || snap.State.Stall.Reason != v1alpha1.ReasonNoProgress {
				t.Errorf("got %d replicas, want %d; stall: %+v", plan.Replicas, tc.replicas, snap.State.Stall)
			}
		})
	}
}

// All snapshots have the same template, without a copy for each, until it changes.
func TestReadSharesTheTemplate(t *testing.T) {
	claim := fixture.Claim(time.Minute)
	claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "general"}
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "general"}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
	clusters := indexed(cluster, fixture.Template(), claim)
	read := func() *v1alpha1.KarpenterMachineTemplate {
		t.Helper()
		snap, err := Read(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, Known{})
		if err != nil || snap.Template == nil {
			t.Fatalf("got no template, and %v", err)
		}
		return snap.Template
	}
	first := read()
	if read() != first {
		t.Error("the template is copied for each snapshot")
	}
	changed := first.DeepCopy()
	changed.Spec.LaunchTimeoutSeconds = new(int32(60))
	if err := clusters.Workload.GetClient().Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if now := read(); now == first || now.Spec.LaunchTimeoutSeconds == nil {
		t.Error("a snapshot has the template of before its change")
	}
}

// A claim of a pool that can provide no Machines fails at once, and does not report that nothing acts on the pool.
func TestReadUnusablePool(t *testing.T) {
	pool := fixture.MachinePool(nil)
	pool.Generation = 1 // on which Cluster API has not acted
	pool.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
	claim := fixture.Claim(time.Minute)
	claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: pool.Name}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("azuremachinepools.infrastructure.cluster.x-k8s.io")
	crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
	infrastructure := fixture.PoolInfrastructure(t, `{initialization: {provisioned: true}}`)
	clusters := indexed(cluster, pool, claim, crd, infrastructure)
	snap, err := Read(t.Context(), clusters, catalog.New(clusters), pool.Name, fixture.Noon, Known{})
	if err != nil {
		t.Fatal(err)
	}
	outcome := planner.Decide(&snap.State).Outcomes[claim.UID]
	if outcome.Stall != (planner.Stall{}) {
		t.Errorf("got the stall %+v", outcome.Stall)
	}
	if outcome.Failure.Kind != planner.ResourceUnusable {
		t.Errorf("got %+v, want that the pool is unusable", outcome.Failure)
	}
}

// The caller can know a Machine in a later version than the cache, and claims and Machines whose link is being written.
func TestReadWithWhatTheCallerKnows(t *testing.T) {
	machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
	resource := deployment(1)
	resource.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
	claim := fixture.Claim(time.Minute)
	claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "general"}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
	linked := func(_ context.Context, _ string, machines []clusterv1.Machine) ([]clusterv1.Machine, error) {
		newest := machines[0].DeepCopy()
		newest.Labels[v1alpha1.NodeClaimUIDLabel] = string(claim.UID)
		return []clusterv1.Machine{*newest}, nil
	}
	for name, tc := range map[string]struct {
		newest  func(context.Context, string, []clusterv1.Machine) ([]clusterv1.Machine, error)
		open    map[types.UID]types.UID
		deleted bool // the claim is being deleted
		links   int  // that are still to be written
		served  string
		settled bool // no link of the claim is being written or is planned
	}{
		"nothing":                                {links: 1, served: "m"},
		"the Machine is linked":                  {newest: linked, served: "m", settled: true},
		"another link is being written":          {open: map[types.UID]types.UID{"other": "other"}, links: 1, served: "m"},
		"its link is being written":              {open: map[types.UID]types.UID{claim.UID: machine.UID}, served: "m"},
		"another claim no longer exists":         {open: map[types.UID]types.UID{claim.UID: machine.UID, "gone": machine.UID}, served: "m"},
		"its link is being written, and it ends": {open: map[types.UID]types.UID{claim.UID: machine.UID}, deleted: true, settled: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := claim.DeepCopy()
			if tc.deleted {
				claim.Finalizers, claim.DeletionTimestamp = []string{karpv1.TerminationFinalizer}, new(metav1.NewTime(fixture.Noon))
			}
			clusters := indexed(cluster, resource.DeepCopy(), claim, machine.DeepCopy())
			snap, err := Read(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, Known{Machines: tc.newest, Open: tc.open})
			if err != nil {
				t.Fatal(err)
			}
			plan := planner.Decide(&snap.State)
			if plan.Linking.Has(claim.UID) == tc.settled || len(plan.Links) != tc.links || plan.Served[claim.UID] != tc.served {
				t.Errorf("got linking %v, links %v and served %v", plan.Linking, plan.Links, plan.Served)
			}
		})
	}
}

// A spare Machine whose Node Karpenter has not registered serves the next claim. One on whose Node Pods may run does not.
func TestReadSpareNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		taints []corev1.Taint
		served string
	}{
		"not registered": {taints: []corev1.Taint{karpv1.UnregisteredNoExecuteTaint}, served: "m"},
		"registered":     {},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
			machine.Status.NodeRef.Name = "n"
			resource := deployment(1)
			resource.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
			claim := fixture.Claim(time.Minute)
			claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "general"}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: tc.taints}}
			clusters := indexed(cluster, resource, claim, machine, node)
			snap, err := Read(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, Known{})
			if err != nil {
				t.Fatal(err)
			}
			if got := planner.Decide(&snap.State).Served[claim.UID]; got != tc.served {
				t.Errorf("the claim is served by %q, want %q", got, tc.served)
			}
		})
	}
}

// A link that a user has removed is restored, but not that of a claim that is being deleted: Delete may have removed it.
func TestReadWithALinkThatWasRemoved(t *testing.T) {
	for name, deleted := range map[string]bool{"a claim": false, "a claim that is being deleted": true} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
			machine.Spec.ProviderID = "sim://m"
			resource := deployment(1)
			resource.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
			claim := fixture.Claim(time.Minute)
			claim.Annotations, claim.Status.ProviderID = map[string]string{v1alpha1.ScalableResourceAnnotation: "general"}, "sim://m"
			claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
			if deleted {
				claim.DeletionTimestamp, claim.Finalizers = new(metav1.NewTime(fixture.Noon)), []string{karpv1.TerminationFinalizer}
			}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			clusters := indexed(cluster, resource, claim, machine)
			snap, err := Read(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, Known{})
			if err != nil {
				t.Fatal(err)
			}
			if restored := len(planner.Decide(&snap.State).Links) == 1; restored == deleted {
				t.Errorf("the link is restored: %t, want %t", restored, !deleted)
			}
		})
	}
}

// While a Cluster is being deleted, replicas follow the Machines that leave, and are never raised.
func TestReplicasWhileTheClusterIsDeleted(t *testing.T) {
	leaving, live := fixture.Machine(time.Minute), fixture.Machine(time.Minute)
	leaving.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
	for name, tc := range map[string]struct {
		machine *clusterv1.Machine
		before  int32
		want    int32
	}{
		"its Machine leaves":            {machine: leaving, before: 1, want: 0},
		"its Machine stays":             {machine: live, before: 1, want: 1},
		"a user has lowered replicas":   {machine: live, before: 0, want: 0},
		"a requested Machine is absent": {machine: live, before: 2, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			state := &snapshotOf(t, scalable.New(deployment(tc.before)), nil, tc.machine).State
			state.ClusterDeleting = true
			if got := planner.Decide(state).Replicas; got != tc.want {
				t.Errorf("got %d replicas, want %d", got, tc.want)
			}
		})
	}
}
