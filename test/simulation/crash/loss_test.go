// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// launchTimeout is the time that core gives a claim to be launched, and registrationTimeout that for its Node
// (karpenter: pkg/controllers/nodeclaim/lifecycle/liveness.go).
const (
	launchTimeout       = 5 * time.Minute
	registrationTimeout = 15 * time.Minute
)

// ledger counts losses that cannot be excluded from outside of Cluster API (docs/design). None is
// tolerated because of its actor or scenario: an entry is added when its mechanism is seen, and
// each use is subtracted from its entry.
type ledger struct {
	// surplus are Machines that replaced others that had vanished while replicas counted them. When
	// replicas follow, that many are surplus, and any of them can be removed.
	surplus int
	// asked are surplus Machines that our process requested, or spare ones that it marked for
	// deletion while a claim waited: its caches were behind.
	asked int
	// handed counts Machines that were unlinked and linked to another claim, which needs no new
	// Machine.
	handed int
	// excused are Machines whose removal is tolerated although they serve a claim, each with whether it is removed
	// instead of a surplus one. spent counts the surplus ones that were used so.
	excused map[string]bool
	spent   int
	// lost counts those that were removed, and lostNodes those of them that were the Node of a claim.
	lost, lostNodes int
	// failed counts the claims that another than the user deleted.
	failed int
	// unclaimed counts the Machines that were marked for deletion or deleted without a claim, and nodeless those with a
	// claim for which that happened before they had a Node.
	unclaimed, nodeless int
	// expired counts the claims that core deleted because they were not launched within launchTimeout, or no Node had
	// registered within registrationTimeout.
	expired int
	// overdue counts the claims that failed while a script still waited for its next step.
	overdue int
	// had are the Machines that the actor on the replicas of a resource knew last.
	had map[string][]string
	// vanished counts, by resource, those that no longer exist and that replicas may still count.
	vanished map[string]int
	// linked is the claim that a Machine was last linked to.
	linked map[string]types.UID
}

func newLedger() ledger {
	return ledger{excused: map[string]bool{}, had: map[string][]string{}, vanished: map[string]int{}, linked: map[string]types.UID{}}
}

// noteCreation records which Machines a MachineSet or a provider has before it creates more. As
// many of the new ones are surplus as others have vanished, unless claims need them.
func (w *simulation) noteCreation(resource string, has []string, alive, create int) {
	w.ledger.vanished[resource] += len(lo.Without(w.ledger.had[resource], has...))
	w.ledger.had[resource] = has
	if create <= 0 {
		// Replicas no longer count them, unless this actor has not seen the present replicas.
		w.ledger.vanished[resource] = max(0, min(w.ledger.vanished[resource], w.replicasNow(resource)-len(has)))
		return
	}
	surplus := max(0, min(create, w.ledger.vanished[resource], alive+create-w.needed(resource)))
	w.ledger.surplus += surplus
	w.ledger.vanished[resource] -= surplus
}

// noteRemoval records that a Machine that is not marked is about to be removed by the actor on
// replicas. It is excused if it is removed instead of a surplus one, or if the caches of that actor
// lack that another one is leaving.
func (w *simulation) noteRemoval(m *clusterv1.Machine, sees view) {
	if leaving(m) {
		return
	}
	for name, object := range sees["Machine"] {
		current := w.machine(name)
		if !leaving(object.(*clusterv1.Machine)) && (current == nil || leaving(current)) {
			w.ledger.excused[m.Name] = false
			return
		}
	}
	// A MachineSet removes Machines without a Node first, and a provider any.
	if w.ledger.surplus > w.ledger.spent && (!m.Status.NodeRef.IsDefined() || w.scaling.kind == v1alpha1.ScalableResourceKindMachinePool) {
		w.ledger.excused[m.Name] = true
	}
}

// isKnownLoss reports whether the removal of a Machine is excused, and counts it.
func (w *simulation) isKnownLoss(m *clusterv1.Machine) bool {
	bySurplus, excused := w.ledger.excused[m.Name]
	if !excused {
		return false
	}
	w.ended[m.Name] = true
	w.ledger.lost++
	if bySurplus {
		w.ledger.spent++
	}
	if m.Status.NodeRef.IsDefined() && w.liveClaim(claimUID(m)) != nil {
		w.ledger.lostNodes++
	}
	return true
}

// noteReplicas records by how much replicas are raised above the need: the caches of our process
// lack that a claim no longer waits, or that a Machine no longer exists.
func (w *simulation) noteReplicas(c *change) {
	if c.after == nil || c.actor != "scalableresource" {
		return
	}
	before, after := replicasOf(c.before), replicasOf(c.after)
	leaves := lo.CountBy(w.machines(), func(m *clusterv1.Machine) bool {
		instance := w.instance(m.Name) // nil if it is a Machine of a MachineDeployment
		return clients.ResourceOf(m) == c.name && leaving(m) && (c.kind == "MachineDeployment" || instance != nil && instance.GetDeletionTimestamp() == nil)
	})
	tooMany := after - max(w.alive(c.name), w.needed(c.name)) - leaves
	w.ledger.asked += max(0, min(tooMany, after-before))
}

// replicasNow returns the replicas of a resource.
func (w *simulation) replicasNow(resource string) int {
	return max(replicasOf(w.server.head["MachineDeployment"][resource]), replicasOf(w.server.head["MachinePool"][resource]))
}

func replicasOf(object client.Object) int {
	switch o := object.(type) {
	case *clusterv1.MachineDeployment:
		return int(lo.FromPtr(o.Spec.Replicas))
	case *clusterv1.MachinePool:
		return int(lo.FromPtr(o.Spec.Replicas))
	}
	return 0
}

// noteMark records that a Machine without a claim is marked for deletion while a claim waits.
func (w *simulation) noteMark(m *clusterv1.Machine) {
	switch {
	case claimUID(m) == "":
		w.ledger.unclaimed++
	case !m.Status.NodeRef.IsDefined():
		w.ledger.nodeless++
	}
	waits := lo.CountBy(w.claims(), func(c *karpv1.NodeClaim) bool { return c.DeletionTimestamp.IsZero() })
	if claimUID(m) == "" && waits > lo.CountBy(w.machines(), func(m *clusterv1.Machine) bool { return !leaving(m) }) {
		w.ledger.asked++
	}
}

// noteLink records that a Machine was linked to a claim.
func (w *simulation) noteLink(m *clusterv1.Machine) {
	before, had := w.ledger.linked[m.Name]
	if had && before != claimUID(m) {
		w.ledger.handed++
	}
	w.ledger.linked[m.Name] = claimUID(m)
}

// alive counts the Machines of a resource that are not leaving.
func (w *simulation) alive(resource string) int {
	return lo.CountBy(w.machines(), func(m *clusterv1.Machine) bool { return clients.ResourceOf(m) == resource && !leaving(m) })
}

// needed counts the claims of a resource that are not being deleted, and the Machines that are not
// for claims.
func (w *simulation) needed(resource string) int {
	claims := 0
	for _, claim := range w.claims() {
		if claim.DeletionTimestamp.IsZero() && claim.Annotations[v1alpha1.ScalableResourceAnnotation] == resource {
			claims++
		}
	}
	return claims + lo.CountBy(w.machines(), func(m *clusterv1.Machine) bool { return w.own[m.Name] && clients.ResourceOf(m) == resource })
}
