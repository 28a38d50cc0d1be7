// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// A registered claim ends with its Machine, Node or instance, and with nothing less. Its Machine stays
// until Karpenter has called Delete.
func TestLostClaims(t *testing.T) {
	set := func(kind string, status metav1.ConditionStatus, reason string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			conditions.Set(m, metav1.Condition{Type: kind, Status: status, Reason: reason})
		}
	}
	infrastructureDeleted := set(clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, clusterv1.MachineInfrastructureDeletedReason)
	silent := set(clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown, clusterv1.MachineNodeReadyUnknownReason)
	nodeRemoved := set(clusterv1.MachineNodeHealthyCondition, metav1.ConditionFalse, clusterv1.MachineNodeDeletedReason)
	node := func(id string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: corev1.NodeSpec{ProviderID: id}}
	}
	silentFor := func(d time.Duration) *corev1.Node {
		n := node("sim://m")
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(now.Add(-d))}}
		return n
	}
	givenUp := func(m *clusterv1.Machine) {
		set(clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady")(m)
		m.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{FailureMessage: new("VM was deleted")}} //nolint:staticcheck // Providers set it.
	}
	for name, tc := range map[string]struct {
		machine      []func(*clusterv1.Machine)
		unregistered bool
		// nodeName and providerID are those of the claim; those of the Machine if empty.
		nodeName, providerID string
		// node is a Node in the workload cluster.
		node *corev1.Node
		// second is another Machine of the claim.
		second *clusterv1.Machine
		lost   bool
		// again is when the claim is examined again.
		again time.Duration
	}{
		"a healthy Machine":                                   {},
		"its Machine has lost its link":                       {machine: []func(*clusterv1.Machine){func(m *clusterv1.Machine) { delete(m.Labels, v1alpha1.NodeClaimUIDLabel) }}},
		"its Node is healthy, and the cache lacks it":         {machine: []func(*clusterv1.Machine){set(clusterv1.MachineNodeHealthyCondition, metav1.ConditionTrue, clusterv1.MachineNodeHealthyReason)}},
		"it has no Node name yet":                             {nodeName: "none"},
		"its second Machine is being deleted":                 {second: machine("second", linkedTo("c"), withID("sim://second"), func(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: now} })},
		"its ID was reset, and its second Machine has a Node": {machine: []func(*clusterv1.Machine){func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "second" }}, providerID: planner.ProvisionalID("c"), nodeName: "first"},
		"its Machine is being deleted":                        {machine: []func(*clusterv1.Machine){func(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: now} }}, lost: true},
		"clusterctl has moved its Machine": {machine: []func(*clusterv1.Machine){func(m *clusterv1.Machine) {
			m.DeletionTimestamp, m.Annotations = &metav1.Time{Time: now}, map[string]string{clusterctlv1.DeleteForMoveAnnotation: ""}
		}}},
		"its Node was removed": {machine: []func(*clusterv1.Machine){nodeRemoved}, lost: true},
		"its Node was removed, and the next Machine has a Node of that name": {machine: []func(*clusterv1.Machine){nodeRemoved}, node: node("sim://next"), lost: true},
		"its Node exists, and Cluster API does not find it":                  {machine: []func(*clusterv1.Machine){nodeRemoved, withID("sim://other")}, providerID: "sim://m", node: node("sim://m")},
		"its instance no longer exists":                                      {machine: []func(*clusterv1.Machine){infrastructureDeleted, silent}, lost: true},
		"its instance no longer exists, and its Node is Unknown since now":   {machine: []func(*clusterv1.Machine){infrastructureDeleted, silent}, node: silentFor(0), lost: true},
		"its provider has given up, and its Node is Unknown for a minute":    {machine: []func(*clusterv1.Machine){givenUp, silent}, node: silentFor(time.Minute), again: 4 * time.Minute},
		"the same, and its Node is that of a second Machine, too": {
			machine: []func(*clusterv1.Machine){givenUp, silent}, node: silentFor(time.Minute), again: 4 * time.Minute,
			second: machine("second", linkedTo("c"), withID("sim://second"), func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "node" }),
		},
		"its provider has given up, and its Node is Unknown for 5 minutes":  {machine: []func(*clusterv1.Machine){givenUp, silent}, node: silentFor(5 * time.Minute), lost: true},
		"its provider has given up, and its Node is Ready":                  {machine: []func(*clusterv1.Machine){givenUp}, node: node("sim://m")},
		"its provider has given up, and its Node no longer exists":          {machine: []func(*clusterv1.Machine){givenUp, silent}, lost: true},
		"its Node does not report":                                          {machine: []func(*clusterv1.Machine){silent}},
		"its instance, and its Node runs":                                   {machine: []func(*clusterv1.Machine){infrastructureDeleted}},
		"a failed health check, remediated":                                 {machine: []func(*clusterv1.Machine){set(clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionFalse, clusterv1.MachineHealthCheckUnhealthyNodeReason), set(clusterv1.MachineOwnerRemediatedCondition, metav1.ConditionFalse, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason)}},
		"a deferred remediation":                                            {machine: []func(*clusterv1.Machine){set(clusterv1.MachineOwnerRemediatedCondition, metav1.ConditionFalse, clusterv1.MachineSetMachineRemediationDeferredReason)}},
		"its first Machine is being deleted, and its ID was reset":          {machine: []func(*clusterv1.Machine){func(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: now} }}, providerID: planner.ProvisionalID("c"), lost: true},
		"its ID was reset":                                                  {providerID: planner.ProvisionalID("c")},
		"the Node of its first Machine":                                     {nodeName: "first", lost: true},
		"the Node of its first Machine, and the second one has no Node yet": {machine: []func(*clusterv1.Machine){func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "" }}, nodeName: "first"},
		"its first Machine and Node no longer exist":                        {machine: []func(*clusterv1.Machine){func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "second" }}, providerID: "sim://first", nodeName: "first", lost: true},
		"its first Machine no longer exists, and the Node exists":           {machine: []func(*clusterv1.Machine){func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "second" }}, providerID: "sim://first", nodeName: "first", node: node("sim://first")},
		"before its Node has registered":                                    {machine: []func(*clusterv1.Machine){infrastructureDeleted, silent}, unregistered: true},
	} {
		t.Run(name, func(t *testing.T) {
			registered := launched("c", func(c *karpv1.NodeClaim) {
				c.Status.ProviderID, c.Status.NodeName = cmp.Or(tc.providerID, "sim://m"), cmp.Or(tc.nodeName, "node")
				if tc.nodeName == "none" {
					c.Status.NodeName = ""
				}
				if !tc.unregistered {
					c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
				}
			})
			its := append([]func(*clusterv1.Machine){linkedTo("c"), withID("sim://m"), func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "node" }}, tc.machine...)
			objects := []client.Object{registered, machine("m", its...)}
			if tc.node != nil {
				objects = append(objects, tc.node)
			}
			if tc.second != nil {
				objects = append(objects, tc.second)
			}
			w := newWorld(objects...)
			r, told := w.newProcess(), &published{}
			r.recorder = told
			for range 2 { // the second reconcile must change nothing
				result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resourceName}})
				if err != nil || tc.again > 0 && result.RequeueAfter != tc.again {
					t.Fatalf("got %s and error %v, want %s", result.RequeueAfter, err, tc.again)
				}
			}
			if lost := !w.claim(t, "c").DeletionTimestamp.IsZero(); lost != tc.lost {
				t.Errorf("the claim is deleted: %t, want %t", lost, tc.lost)
			}
			if want := map[bool]int{true: 1}[tc.lost]; len(*told) != want {
				t.Errorf("got events %v, want %d", *told, want)
			}
			if lifecycle.IsMarked(w.machine(t, "m")) {
				t.Error("the Machine is marked for deletion")
			}
			if marks := w.marks(t); len(marks) > 0 {
				t.Errorf("offerings are unavailable: %v", marks)
			}
		})
	}
}

// The time of the next reconcile is that of the first instance that can count as gone.
func TestFirstLostClaim(t *testing.T) {
	var objects []client.Object
	for i, name := range []string{"first", "second"} {
		id := "sim://" + name
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(now.Add(time.Duration(i-2) * time.Minute))}}
		objects = append(objects, node, launched(name, func(c *karpv1.NodeClaim) {
			c.Status.ProviderID, c.Status.NodeName = id, name
			c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
		}), machine("of-"+name, linkedTo(name), withID(id), infrastructure("NotReady"), func(m *clusterv1.Machine) {
			m.Status.NodeRef.Name = name
			conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionUnknown, Reason: clusterv1.MachineNodeReadyUnknownReason})
			m.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{FailureMessage: new("VM was deleted")}} //nolint:staticcheck // Providers set it.
		}))
	}
	result, err := newWorld(objects...).newProcess().Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resourceName}})
	if err != nil || result.RequeueAfter != 3*time.Minute {
		t.Errorf("got %s and %v, want 3m", result.RequeueAfter, err)
	}
}

// The caches of Cluster API and of this operator see that a Node was deleted in any order, so its deletion is an
// event of the resource of its claim, and only that.
func TestResourcesOfNode(t *testing.T) {
	withNodeID := func(id string) func(*karpv1.NodeClaim) {
		return func(c *karpv1.NodeClaim) { c.Status.ProviderID = id }
	}
	unnamed := launched("unnamed", withNodeID("real://unnamed"), func(c *karpv1.NodeClaim) { c.Annotations = nil })
	r := newWorld(launched("c", withNodeID("real://m")), launched("waits", withNodeID("")), unnamed).newProcess()
	for name, tc := range map[string]struct {
		object client.Object
		want   []reconcile.Request
	}{
		"of a claim":              {object: &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "real://m"}}, want: []reconcile.Request{{NamespacedName: types.NamespacedName{Name: resourceName}}}},
		"of no claim":             {object: &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "real://other"}}},
		"without a provider ID":   {object: &corev1.Node{}},
		"of one without resource": {object: &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "real://unnamed"}}},
		"no Node":                 {object: &corev1.Pod{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(tc.want, r.resourcesOfNode(t.Context(), tc.object), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if only := enqueue.Deleted(); only.Create(event.CreateEvent{}) || only.Update(event.UpdateEvent{}) || only.Generic(event.GenericEvent{}) || !only.Delete(event.DeleteEvent{}) {
		t.Error("other events than deletions are passed, or deletions are not")
	}
}

// A registered claim without a linked Machine is not lost: its Machine may have lost its link.
func TestClaimWithoutALinkedMachineIsNotLost(t *testing.T) {
	w := newWorld()
	claim := launched("c", func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered) })
	if reason, left, err := w.newProcess().lost(t.Context(), claim, &decided{Snapshot: &snapshot.Snapshot{State: planner.State{Now: now}}}); reason != "" || left != 0 || err != nil {
		t.Errorf("got %q, %s and %v", reason, left, err)
	}
}
