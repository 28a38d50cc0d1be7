// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// indexed returns a cluster with objects, and the served Cluster.
func indexed(objects ...client.Object) client.WithWatch {
	objects = append(objects, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}})
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithStatusSubresource(&karpv1.NodeClaim{}).
		WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(o client.Object) []string { return []string{string(lifecycle.ClaimUID(o))} }).
		WithIndex(&clusterv1.Machine{}, clients.MachineProviderIDField, func(o client.Object) []string { return []string{o.(*clusterv1.Machine).Spec.ProviderID} }).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimProviderIDField, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).
		Build()
}

// machineOf returns a Machine of the served Cluster that is linked to the claim of a UID.
func machineOf(name string, claim types.UID, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
	m.Name, m.UID, m.Annotations, m.Finalizers = name, types.UID(name), map[string]string{}, []string{clusterv1.MachineFinalizer}
	m.Labels[clusterv1.ClusterNameLabel], m.Labels[v1alpha1.TemplateLabel] = fixture.Served.Name, "general"
	if claim != "" {
		m.Labels[v1alpha1.NodeClaimUIDLabel], m.Annotations[v1alpha1.NodeClaimAnnotation] = string(claim), string(claim)
	}
	for _, f := range change {
		f(m)
	}
	return m
}

func hasID(id string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Spec.ProviderID = id }
}

func hasNode(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }

func isMarked(m *clusterv1.Machine) {
	m.Annotations[v1alpha1.MarkedForDeletionAtAnnotation] = timestamp.Format(fixture.Noon)
}

// Get finds the Machine of a provider ID or, for a provisional ID, of its claim. Of two, it returns the one that
// stays. Before a claim has its Machine, it returns the claim.
func TestGet(t *testing.T) {
	provisional := planner.ProvisionalID("c")
	waits := launched("c", "small")
	waits.Status.ProviderID = provisional
	ends := waits.DeepCopy()
	ends.DeletionTimestamp, ends.Finalizers = new(metav1.NewTime(fixture.Noon)), []string{karpv1.TerminationFinalizer}
	for name, tc := range map[string]struct {
		id      string
		objects []client.Object
		node    string // that of the claim that is found
		found   bool
	}{
		"no ID":                               {objects: []client.Object{machineOf("m", "c")}},
		"a Machine":                           {id: "sim://m", objects: []client.Object{machineOf("m", "c", hasID("sim://m"), hasNode)}, found: true, node: "n"},
		"a Machine of another ID":             {id: "sim://m", objects: []client.Object{machineOf("m", "c", hasID("sim://other"))}},
		"a Machine that leaves":               {id: "sim://m", objects: []client.Object{machineOf("m", "c", hasID("sim://m"), isMarked)}, found: true},
		"a claim with its Machine":            {id: provisional, objects: []client.Object{waits, machineOf("m", "c", hasNode)}, found: true, node: "n"},
		"a claim with two, the first leaves":  {id: provisional, objects: []client.Object{machineOf("a", "c", isMarked), machineOf("b", "c", hasNode)}, found: true, node: "n"},
		"a claim with two, the second leaves": {id: provisional, objects: []client.Object{machineOf("a", "c", hasNode), machineOf("b", "c", isMarked)}, found: true, node: "n"},
		"a claim without a Machine":           {id: provisional, objects: []client.Object{waits, machineOf("m", "d")}, found: true},
		"a claim that ends without one":       {id: provisional, objects: []client.Object{ends}},
		"a claim that no longer exists":       {id: provisional},
	} {
		t.Run(name, func(t *testing.T) {
			both := fixture.Cluster{Client: indexed(tc.objects...)}
			provider := New(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil, clock.RealClock{})
			got, err := provider.Get(t.Context(), tc.id)
			if !tc.found {
				if !cloudprovider.IsNodeClaimNotFoundError(err) {
					t.Errorf("got %v and %v, want that it does not exist", got, err)
				}
				return
			}
			if err != nil || got.Status.NodeName != tc.node || got.Status.ProviderID != tc.id && tc.id != provisional {
				t.Errorf("got %+v and %v, want Node %q", got, err, tc.node)
			}
		})
	}
}

// List returns what a Machine shows of its claim.
func TestList(t *testing.T) {
	offered := func(zone string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			m.Labels = lo.Assign(m.Labels, map[string]string{v1alpha1.InstanceTypeLabel: "small", v1alpha1.CapacityTypeLabel: "spot"})
			if zone != "" {
				m.Labels[v1alpha1.ZoneLabel] = zone
			}
		}
	}
	deleted := func(m *clusterv1.Machine) { m.DeletionTimestamp = new(metav1.NewTime(fixture.Noon)) }
	type claim struct {
		UID          types.UID
		Name, ID     string
		Node         string
		Labels       map[string]string
		Age          time.Duration
		BeingDeleted bool
	}
	labels := map[string]string{corev1.LabelInstanceTypeStable: "small", karpv1.CapacityTypeLabelKey: "spot"}
	both := fixture.Cluster{Client: indexed(
		machineOf("m", "c", hasID("sim://m"), hasNode, offered("a")), machineOf("booting", "d", offered("")), machineOf("ends", "e", offered(""), deleted), machineOf("spare", "", offered("a")),
	)}
	listed, err := New(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil, clock.RealClock{}).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := lo.Map(listed, func(c *karpv1.NodeClaim, _ int) claim {
		return claim{c.UID, c.Name, c.Status.ProviderID, c.Status.NodeName, c.Labels, fixture.Noon.Sub(c.CreationTimestamp.Time), !c.DeletionTimestamp.IsZero()}
	})
	slices.SortFunc(got, func(a, b claim) int { return int(a.UID[0]) - int(b.UID[0]) })
	want := []claim{
		{"c", "c", "sim://m", "n", lo.Assign(labels, map[string]string{corev1.LabelTopologyZone: "a"}), time.Minute, false},
		{"d", "d", planner.ProvisionalID("d"), "", labels, time.Minute, false},
		{"e", "e", planner.ProvisionalID("e"), "", labels, time.Minute, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Delete finds the Machine of a claim by its link or, if a user has removed that, by its provider ID. Only a Machine
// that has a Node and is of a template can be such a one.
func TestMachineOfAClaim(t *testing.T) {
	of := func(id string) *karpv1.NodeClaim {
		c := launched("c", "small")
		c.Status.ProviderID = id
		return c
	}
	for name, tc := range map[string]struct {
		claim    *karpv1.NodeClaim
		machines []client.Object
		want     []string
	}{
		"the linked one":                  {claim: of("sim://m"), machines: []client.Object{machineOf("m", "c", hasID("sim://m")), machineOf("x", "", hasID("sim://m"), hasNode)}, want: []string{"m"}},
		"all linked ones":                 {claim: of("sim://m"), machines: []client.Object{machineOf("m", "c", hasID("sim://m")), machineOf("n", "c")}, want: []string{"m", "n"}},
		"one that has lost its link":      {claim: of("sim://m"), machines: []client.Object{machineOf("m", "", hasID("sim://m"), hasNode)}, want: []string{"m"}},
		"one that was unlinked":           {claim: of("sim://m"), machines: []client.Object{machineOf("m", "", hasID("sim://m"))}},
		"one that serves another claim":   {claim: of("sim://m"), machines: []client.Object{machineOf("m", "d", hasID("sim://m"), hasNode)}},
		"one of no template":              {claim: of("sim://m"), machines: []client.Object{machineOf("m", "", hasID("sim://m"), hasNode, func(m *clusterv1.Machine) { delete(m.Labels, v1alpha1.TemplateLabel) })}},
		"a claim without a Machine":       {claim: of(planner.ProvisionalID("c")), machines: []client.Object{machineOf("m", "", hasID(planner.ProvisionalID("c")), hasNode)}},
		"a claim that was never launched": {claim: of(""), machines: []client.Object{machineOf("m", "", hasNode)}},
	} {
		t.Run(name, func(t *testing.T) {
			both := fixture.Cluster{Client: indexed(tc.machines...)}
			machines, err := New(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil, clock.RealClock{}).machinesOf(t.Context(), tc.claim)
			if err != nil {
				t.Fatal(err)
			}
			got := lo.Map(machines, func(m clusterv1.Machine, _ int) string { return m.Name })
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Before core removes the finalizer of a claim, Delete lists the Machines that are linked to it from the API server: the
// cache may lack the link. It does not if the cache has had the Machine whose Node is registered.
func TestLinksAreReadUnlessTheCacheHasHadTheMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		registered bool
		id         string // of the claim when its Machine no longer exists
		machine    []func(*clusterv1.Machine)
		read       bool
	}{
		"its Node is registered":                   {registered: true, id: "sim://m", machine: []func(*clusterv1.Machine){hasID("sim://m")}},
		"its Node is not registered":               {id: "sim://m", machine: []func(*clusterv1.Machine){hasID("sim://m")}, read: true},
		"its Machine has another ID":               {registered: true, id: "sim://m", machine: []func(*clusterv1.Machine){hasID("sim://other")}, read: true},
		"its Machine has no ID, nor has the claim": {registered: true, read: true},
		"the claim has another ID since":           {registered: true, id: "sim://new", machine: []func(*clusterv1.Machine){hasID("sim://m")}, read: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := launched("c", "small")
			if claim.Status.ProviderID = tc.id; tc.id == "sim://new" {
				claim.Status.ProviderID = "sim://m"
			}
			if tc.registered {
				claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
			}
			machine, reads := machineOf("m", "c", tc.machine...), 0
			machine.Finalizers = nil
			c := indexed(machine)
			live := interceptor.NewClient(indexed(), interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				reads++
				return c.List(ctx, list, options...)
			}})
			provider := New(&clients.Clusters{Cluster: fixture.Served, Workload: fixture.Cluster{Client: c}, Management: fixture.Cluster{Client: c, Live: live}}, nil, clock.RealClock{})
			if machines, err := provider.machinesOf(t.Context(), claim); err != nil || len(machines) != 1 || reads > 0 {
				t.Fatalf("got %d Machines and %v after %d reads, want the one that the cache has", len(machines), err, reads)
			}
			if err := c.Delete(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
			claim.Status.ProviderID = tc.id
			if machines, err := provider.machinesOf(t.Context(), claim); err != nil || len(machines) > 0 || (reads > 0) != tc.read {
				t.Errorf("got %d Machines and %v after %d reads, want a read: %t", len(machines), err, reads, tc.read)
			}
		})
	}
}

// The ID of a claim whose Machine is given to another claim is reset, if the API server shows that the claim is the
// same and its Node is not registered.
func TestResetProviderID(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*karpv1.NodeClaim)
		fails  bool
		want   string
	}{
		"it has the ID of its Machine":    {want: planner.ProvisionalID("c")},
		"it has no real ID":               {change: func(c *karpv1.NodeClaim) { c.Status.ProviderID = planner.ProvisionalID("c") }, want: planner.ProvisionalID("c")},
		"its Node has registered since":   {change: func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered) }, fails: true, want: "sim://m"},
		"another claim of that name, now": {change: func(c *karpv1.NodeClaim) { c.UID = "again" }, fails: true, want: "sim://m"},
	} {
		t.Run(name, func(t *testing.T) {
			read := launched("c", "small")
			read.Status.ProviderID = "sim://m"
			stored := read.DeepCopy()
			if tc.change != nil {
				tc.change(stored)
			}
			c := indexed(stored)
			before := &karpv1.NodeClaim{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(read), before); err != nil {
				t.Fatal(err)
			}
			both := fixture.Cluster{Client: c}
			provider := New(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil, clock.RealClock{})
			if err := provider.resetProviderID(t.Context(), read); (err != nil) != tc.fails {
				t.Errorf("got %v, want an error: %t", err, tc.fails)
			}
			after := &karpv1.NodeClaim{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(read), after); err != nil {
				t.Fatal(err)
			}
			if after.Status.ProviderID != tc.want || (after.ResourceVersion != before.ResourceVersion) != (before.Status.ProviderID != tc.want) {
				t.Errorf("got ID %s, want %s; resourceVersion %s, before %s", after.Status.ProviderID, tc.want, after.ResourceVersion, before.ResourceVersion)
			}
		})
	}
}

// If core registers the Node of a claim while its ID is reset, the ID stays.
func TestResetProviderIDDuringRegistration(t *testing.T) {
	claim := launched("c", "small")
	claim.Status.ProviderID = "sim://m"
	c := interceptor.NewClient(indexed(claim.DeepCopy()), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			registered := &karpv1.NodeClaim{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), registered); err != nil {
				return err
			}
			registered.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
			if err := c.SubResource(name).Update(ctx, registered); err != nil {
				return err
			}
			return c.SubResource(name).Patch(ctx, object, patch, options...)
		},
	})
	both := fixture.Cluster{Client: c}
	provider := New(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil, clock.RealClock{})
	if err := provider.resetProviderID(t.Context(), claim); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// Nothing is launched with a template that is not Ready, or whose present generation is not examined. Only the first
// is for users to correct: core deletes the claim, which otherwise waits.
func TestCreateWaitsForTheTemplate(t *testing.T) {
	type template = *v1alpha1.KarpenterMachineTemplate
	for name, tc := range map[string]struct {
		change          func(template)
		ref             func(*karpv1.NodeClassReference)
		notReady, waits bool
	}{
		"it is Ready":                 {},
		"it is not Ready":             {change: func(t template) { t.StatusConditions().SetFalse(v1alpha1.ConditionInstanceTypesReady, "x", "x") }, notReady: true},
		"it is not known to be Ready": {change: func(t template) { t.StatusConditions().SetUnknown(v1alpha1.ConditionInstanceTypesReady) }, waits: true},
		"a cluster could not be reached before": {change: func(t template) {
			t.StatusConditions().SetFalse(v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterUnreachable, "the workload cluster cannot be reached")
		}, waits: true},
		"its Cluster is being deleted": {change: func(t template) {
			t.StatusConditions().SetFalse(v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterDeleting, "x")
		}, notReady: true},
		"it has changed since":   {change: func(t template) { t.Generation++ }, waits: true},
		"it does not exist":      {ref: func(ref *karpv1.NodeClassReference) { ref.Name = "other" }, notReady: true},
		"it is of another kind":  {ref: func(ref *karpv1.NodeClassReference) { ref.Kind = "EC2NodeClass" }, notReady: true},
		"it is of another group": {ref: func(ref *karpv1.NodeClassReference) { ref.Group = "karpenter.k8s.aws" }, notReady: true},
	} {
		t.Run(name, func(t *testing.T) {
			provider, _ := newProvider(tc.change)
			claim := waiting()
			claim.Spec.NodeClassRef = new(*nodeClassRef)
			if tc.ref != nil {
				tc.ref(claim.Spec.NodeClassRef)
			}
			_, err := provider.Create(t.Context(), claim)
			var waits *cloudprovider.CreateError
			if notReady := cloudprovider.IsNodeClassNotReadyError(err); notReady != tc.notReady || errors.As(err, &waits) != tc.waits || (err != nil) != (tc.notReady || tc.waits) {
				t.Errorf("got %v, want NodeClassNotReadyError: %t, CreateError: %t", err, tc.notReady, tc.waits)
			}
		})
	}
}

// Karpenter ignores the taint that each Node of Cluster API has at first.
func TestTaintOfNewNodesIsIgnored(t *testing.T) {
	if !lo.ContainsBy(scheduling.KnownEphemeralTaints, func(taint corev1.Taint) bool { return taint.MatchTaint(&clusterv1.NodeUninitializedTaint) }) {
		t.Errorf("%s is not among %v", clusterv1.NodeUninitializedTaint.Key, scheduling.KnownEphemeralTaints)
	}
}
