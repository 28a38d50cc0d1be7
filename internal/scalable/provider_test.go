// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/link"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

type clusterOf struct {
	cluster.Cluster
	client client.Client
}

func (c clusterOf) GetClient() client.Client    { return c.client }
func (c clusterOf) GetAPIReader() client.Reader { return c.client }

// clustersWith returns clusters that are one, with objects.
func clustersWith(objects ...client.Object) *operator.Clusters {
	for _, plural := range []string{"azuremachinepools", "azuremachinepoolmachines"} {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName(plural + ".infrastructure.cluster.x-k8s.io")
		crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
		objects = append(objects, crd)
	}
	ofResource := func(o client.Object) []string { return []string{operator.ResourceOf(o)} }
	both := clusterOf{client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithIndex(&clusterv1.MachineSet{}, operator.ResourceField, ofResource).Build()}
	return &operator.Clusters{Cluster: served, Workload: both, Management: both}
}

// scaleSet returns the machine pool of an infrastructure, with a status in YAML.
func scaleSet(t *testing.T, status string) *unstructured.Unstructured {
	t.Helper()
	object := poolOf(t, "AzureMachinePool", `{}`)
	object.SetName("pool")
	object.SetResourceVersion("")
	object.Object["status"] = parse(t, status)
	return object
}

// instanceOf returns the instance of the Machine of machineOf.
func instanceOf() *unstructured.Unstructured {
	object := infrastructure()
	object.SetKind("AzureMachinePoolMachine")
	object.SetName("m")
	object.SetResourceVersion("")
	return object
}

// machinePool returns one whose infrastructure is the scale set.
func machinePool(annotations map[string]string) *Resource {
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "pool", Annotations: annotations, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	pool.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AzureMachinePool", Name: "pool"}
	return resourceOf(machinePools{}, pool)
}

// ofPool returns the Machine of a pool, with its instance.
func ofPool(machine *clusterv1.Machine) *clusterv1.Machine {
	machine.Namespace = "clusters"
	machine.Labels = map[string]string{clusterv1.MachinePoolNameLabel: "pool"}
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AzureMachinePoolMachine", Name: machine.Name}
	return machine
}

func TestUnusable(t *testing.T) {
	const without = "AzureMachinePool clusters/pool has no MachinePool Machines (status.infrastructureMachineKind), so that no single one could be removed: turn them on in the infrastructure provider, or set spec.scalableResource.kind to MachineDeployment"
	managed := map[string]string{clusterv1.ReplicasManagedByAnnotation: "external-autoscaler"}
	for name, tc := range map[string]struct {
		annotations map[string]string
		status      string // of the infrastructure; empty if there is none
		want        string
		handsOff    bool
	}{
		"no infrastructure yet":                       {},
		"an infrastructure that is being made":        {status: `{ready: false}`},
		"one that makes Machines, before it is ready": {status: `{infrastructureMachineKind: AzureMachinePoolMachine}`},
		"one that makes Machines":                     {status: `{ready: true, infrastructureMachineKind: AzureMachinePoolMachine}`},
		"one that is ready and makes none":            {status: `{ready: true}`, want: without},
		"one that says so with an empty string":       {status: `{ready: true, infrastructureMachineKind: ""}`, want: without},
		"one that is ready by the contract":           {status: `{initialization: {provisioned: true}}`, want: without},
		"replicas of somebody else": {status: `{ready: true, infrastructureMachineKind: AzureMachinePoolMachine}`, annotations: managed, handsOff: true,
			want: "the replicas of MachinePool clusters/pool are set by somebody else: remove what does that, and the annotation cluster.x-k8s.io/replicas-managed-by"},
		"replicas of somebody else, and no infrastructure": {annotations: managed, want: "set by somebody else", handsOff: true},
		"replicas that are said to be of nobody else":      {annotations: map[string]string{clusterv1.ReplicasManagedByAnnotation: "false"}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.status != "" {
				objects = append(objects, scaleSet(t, tc.status))
			}
			clusters, pool := clustersWith(objects...), machinePool(tc.annotations)
			got, err := Unusable(t.Context(), clusters, pool)
			if err != nil || (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q (%v), want %q", got, err, tc.want)
			}
			if paused, err := pool.Suspended(t.Context(), clusters); err != nil || paused != tc.handsOff {
				t.Errorf("paused: got %t (%v)", paused, err)
			}
		})
	}
	if got, err := Unusable(t.Context(), clustersWith(), resourceOf(machineDeployments{}, &clusterv1.MachineDeployment{})); err != nil || got != "" {
		t.Errorf("a MachineDeployment: got %q (%v)", got, err)
	}
}

// A claim of a pool that cannot be used has failed at once, and says why.
func TestFailureOfUnusablePool(t *testing.T) {
	snap := &Snapshot{Now: noon, Settings: settings, unusable: "no Machines"}
	got := snap.Failure(claimOf(time.Second))
	if got == nil || got.Kind != ResourceUnusable || got.Message != "no Machines" {
		t.Errorf("got %+v", got)
	}
}

func TestObservePool(t *testing.T) {
	const makesMachines = `{infrastructureMachineKind: AzureMachinePoolMachine}`
	ago := func(seconds int) map[string]string {
		return map[string]string{v1alpha1.ReplicasSetAtAnnotation: Timestamp(noon.Add(-time.Duration(seconds) * time.Second))}
	}
	for name, tc := range map[string]struct {
		pool    *Resource
		status  string // of the infrastructure; empty if there is none
		claims  int
		want    link.Pool
		problem string
		dueIn   time.Duration
	}{
		"no pool yet":           {claims: 1, want: link.Pool{Unready: true}},
		"no infrastructure yet": {pool: machinePool(nil), want: link.Pool{Unready: true, ReplicasSeen: true}, problem: ": its infrastructure is not there"},
		"an infrastructure that makes no Machines yet": {pool: machinePool(nil), status: `{}`, want: link.Pool{Unready: true, ReplicasSeen: true}},
		"and a claim that waits for it":                {pool: machinePool(nil), status: `{}`, claims: 1, want: link.Pool{Unready: true, ReplicasSeen: true}, dueIn: 5 * time.Second},
		"an infrastructure that makes Machines":        {pool: machinePool(nil), status: makesMachines, claims: 1, want: link.Pool{ReplicasSeen: true}},
		"replicas of just now":                         {pool: machinePool(ago(0)), status: makesMachines, want: link.Pool{}, dueIn: 10 * time.Second},
		"replicas of 9 seconds ago":                    {pool: machinePool(ago(9)), status: makesMachines, want: link.Pool{}, dueIn: time.Second},
		"replicas of 10 seconds ago":                   {pool: machinePool(ago(10)), status: makesMachines, want: link.Pool{ReplicasSeen: true}},
		"an infrastructure that says what is wrong": {pool: machinePool(nil), status: `{conditions: [{type: Other, status: "False", reason: No, message: no}, {type: Ready, status: "False", reason: ScaleSetProvisionFailed, message: no quota}]}`,
			want: link.Pool{Unready: true, ReplicasSeen: true}, problem: ": ScaleSetProvisionFailed: no quota"},
		"one that is ready": {pool: machinePool(nil), status: `{infrastructureMachineKind: x, conditions: [{type: Ready, status: "True", reason: Yes}]}`, want: link.Pool{ReplicasSeen: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.status != "" {
				objects = append(objects, scaleSet(t, tc.status))
			}
			snap := &Snapshot{Now: noon, Resource: tc.pool, Settings: settings, Claims: make([]karpv1.NodeClaim, tc.claims), instanceGone: map[string]bool{}}
			if err := (machinePools{}).observe(t.Context(), clustersWith(objects...), snap); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(link.Scaling(tc.want), snap.scaling); diff != "" {
				t.Errorf("scaling (-want +got):\n%s", diff)
			}
			if snap.scalingProblem != tc.problem {
				t.Errorf("problem: got %q, want %q", snap.scalingProblem, tc.problem)
			}
			if got := snap.DueIn(); got != tc.dueIn {
				t.Errorf("due in %s, want %s", got, tc.dueIn)
			}
		})
	}
}

// What is told of a leaving Machine of a pool: whether the provider must have seen that
// it was chosen, and whether its instance is going or gone.
func TestObserveLeavingMachines(t *testing.T) {
	chosen := func(machine *clusterv1.Machine, age time.Duration) *clusterv1.Machine {
		machine.Annotations = map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: Timestamp(noon.Add(-age)), v1alpha1.TerminateHookAnnotation: ""}
		return machine
	}
	deleted := func(machine *clusterv1.Machine, age time.Duration) *clusterv1.Machine {
		machine.DeletionTimestamp = new(metav1.NewTime(noon.Add(-age)))
		return machine
	}
	node := func(machine *clusterv1.Machine) *clusterv1.Machine {
		machine.Spec.ProviderID, machine.Status.NodeRef = "azure:///m", clusterv1.MachineNodeReference{Name: "n"}
		return machine
	}
	unknown := node(machineOf(time.Minute))
	unknown.Spec.ProviderID = ""
	going := instanceOf()
	going.SetFinalizers([]string{"x"})
	going.SetDeletionTimestamp(new(metav1.NewTime(noon)))
	listed := []string{"azure:///other", "azure:///m"}
	for name, tc := range map[string]struct {
		machine  *clusterv1.Machine
		instance *unstructured.Unstructured
		listed   []string // by the pool
		want     link.Machine
		dueIn    time.Duration
	}{
		"a live one": {machine: machineOf(time.Minute), instance: instanceOf(), dueIn: time.Minute},
		"a live one that has lost its instance": {machine: machineOf(time.Minute),
			want: link.Machine{Leaving: true, InstanceGone: true}, dueIn: time.Minute},
		"a live Node that has lost its instance": {machine: node(machineOf(time.Minute)),
			want: link.Machine{HasNode: true}, dueIn: time.Minute},
		"chosen just now": {machine: chosen(machineOf(time.Minute), 0), instance: instanceOf(),
			want: link.Machine{Leaving: true, Marked: true, Hooked: true}, dueIn: 10 * time.Second},
		"chosen 9 seconds ago": {machine: chosen(machineOf(time.Minute), 9*time.Second), instance: instanceOf(),
			want: link.Machine{Leaving: true, Marked: true, Hooked: true}, dueIn: time.Second},
		"chosen 10 seconds ago": {machine: chosen(machineOf(time.Minute), 10*time.Second), instance: instanceOf(),
			want: link.Machine{Leaving: true, Marked: true, Hooked: true, MarkSeen: true}},
		"chosen, not deleted, and without an instance": {machine: chosen(machineOf(time.Minute), time.Minute),
			want: link.Machine{Leaving: true, Marked: true, Hooked: true, MarkSeen: true, InstanceGone: true}},
		"deleted by somebody else": {machine: deleted(machineOf(time.Minute), 0), instance: instanceOf(),
			want: link.Machine{Leaving: true}, dueIn: 10 * time.Second},
		"deleted a minute ago by somebody else": {machine: deleted(machineOf(time.Hour), time.Minute), instance: instanceOf(),
			want: link.Machine{Leaving: true, Unfit: true, Expired: true}},
		"deleted, and its instance is going": {machine: deleted(machineOf(time.Minute), 0), instance: going,
			want: link.Machine{Leaving: true, InstanceGone: true}, dueIn: 10 * time.Second},
		"deleted, and its instance is gone": {machine: deleted(machineOf(time.Minute), 0),
			want: link.Machine{Leaving: true, InstanceGone: true}, dueIn: 10 * time.Second},
		"deleted, a Node, and the provider lists it": {machine: deleted(node(machineOf(time.Minute)), 0), instance: instanceOf(), listed: listed,
			want: link.Machine{Leaving: true, HasNode: true}, dueIn: 10 * time.Second},
		"deleted, a Node, and the provider lists others": {machine: deleted(node(machineOf(time.Minute)), 0), instance: instanceOf(), listed: listed[:1],
			want: link.Machine{Leaving: true, HasNode: true, InstanceGone: true}, dueIn: 10 * time.Second},
		"deleted, booting, and the provider lists others": {machine: deleted(machineOf(time.Minute), 0), instance: instanceOf(), listed: listed[:1],
			want: link.Machine{Leaving: true}, dueIn: 10 * time.Second},
		"deleted, a Node, without a provider ID so far": {machine: deleted(unknown, 0), instance: instanceOf(), listed: listed,
			want: link.Machine{Leaving: true, HasNode: true}, dueIn: 10 * time.Second},
		"chosen, a Node, and the provider lists others": {machine: chosen(node(machineOf(time.Minute)), time.Minute), instance: instanceOf(), listed: listed[:1],
			want: link.Machine{Leaving: true, Marked: true, Hooked: true, HasNode: true, MarkSeen: true}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{scaleSet(t, `{infrastructureMachineKind: AzureMachinePoolMachine}`)}
			if tc.instance != nil {
				objects = append(objects, tc.instance)
			}
			machine, pool := ofPool(tc.machine), machinePool(nil)
			pool.API().(*clusterv1.MachinePool).Spec.ProviderIDList = tc.listed
			snap := &Snapshot{Now: noon, Resource: pool, Settings: settings, Machines: map[string]*clusterv1.Machine{"m": machine}, instanceGone: map[string]bool{}}
			if err := (machinePools{}).observe(t.Context(), clustersWith(objects...), snap); err != nil {
				t.Fatal(err)
			}
			tc.want.Name, tc.want.Created, tc.want.ProviderID = "m", machine.CreationTimestamp.Time, machine.Spec.ProviderID
			if diff := cmp.Diff([]link.Machine{tc.want}, snap.state().Machines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := snap.DueIn(); got != tc.dueIn {
				t.Errorf("due in %s, want %s", got, tc.dueIn)
			}
		})
	}
}

// When the pool itself goes, nothing is made in place of a Machine that goes, and
// replicas are not written any more: there is nothing to wait for.
func TestObserveMachinesOfPoolThatGoes(t *testing.T) {
	going := machinePool(nil)
	going.SetDeletionTimestamp(new(metav1.NewTime(noon)))
	infrastructure := scaleSet(t, `{infrastructureMachineKind: AzureMachinePoolMachine}`)
	infrastructure.SetFinalizers([]string{"x"})
	infrastructure.SetDeletionTimestamp(new(metav1.NewTime(noon)))
	for name, tc := range map[string]struct {
		resource *Resource
		objects  []client.Object
	}{
		"being deleted":                    {resource: going},
		"gone":                             {},
		"its infrastructure being deleted": {resource: machinePool(nil), objects: []client.Object{infrastructure, instanceOf(), machinePool(nil).API()}},
	} {
		t.Run(name, func(t *testing.T) {
			leaving, live := ofPool(machineOf(time.Minute)), ofPool(machineOf(time.Minute))
			live.Name = "live"
			leaving.DeletionTimestamp = new(metav1.NewTime(noon))
			leaving.Annotations = map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: Timestamp(noon), v1alpha1.TerminateHookAnnotation: ""}
			snap := &Snapshot{Now: noon, Resource: tc.resource, Settings: settings, instanceGone: map[string]bool{},
				Machines: map[string]*clusterv1.Machine{"m": leaving, "live": live}}
			if err := (machinePools{}).observe(t.Context(), clustersWith(tc.objects...), snap); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"m"}, link.Decide(snap.state()).Deletable); diff != "" {
				t.Errorf("let go (-want +got):\n%s", diff)
			}
			if snap.instanceGone["live"] && len(tc.objects) == 0 {
				t.Error("a live Machine counts as gone")
			}
			if diff := cmp.Diff(link.Scaling(link.Pool{Unready: true, ReplicasSeen: len(tc.objects) > 0}), snap.scaling); diff != "" {
				t.Errorf("scaling (-want +got):\n%s", diff)
			}
		})
	}
}
