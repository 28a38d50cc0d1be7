// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// check checks, after one change, what must always hold (docs/design).
func (w *simulation) check(c *change) {
	switch c.kind {
	case "Machine":
		before, _ := c.before.(*clusterv1.Machine)
		after, _ := c.after.(*clusterv1.Machine)
		w.checkMachine(c, before, after)
		if after != nil && after.Spec.ProviderID != "" {
			w.owners[after.Spec.ProviderID] = append(slices.Clip(w.owners[after.Spec.ProviderID]), claimUID(after))
		}
	case "MachineDeployment", "MachinePool":
		w.noteReplicas(c)
		if c.actor == "scalableresource" && w.clusterEnds() && !w.executesLate && replicasOf(c.after) > replicasOf(c.before) {
			w.fail("replicas of %s are raised, and the Cluster is being deleted", c.name)
		}
	case instanceKind:
		if m := w.machine(c.name); m != nil && c.before != nil && (c.after == nil || c.after.GetDeletionTimestamp() != nil) {
			if uid, served := w.serves(m); served && !w.ended[c.name] {
				w.fail("the instance of Machine %s, which serves live claim %s, is leaving", c.name, uid)
			}
		}
	case "NodeClaim":
		if c.actor != "user" && c.before != nil && c.before.GetDeletionTimestamp() == nil && (c.after == nil || c.after.GetDeletionTimestamp() != nil) {
			w.ledger.failed++
			if len(w.script) > 0 {
				w.ledger.overdue++
			}
			claim, limit := c.before.(*karpv1.NodeClaim), registrationTimeout
			if !claim.StatusConditions().Get(karpv1.ConditionTypeLaunched).IsTrue() {
				limit = launchTimeout
			}
			if c.actor == "nodeclaim.lifecycle" && w.clock.Since(claim.CreationTimestamp.Time) >= limit {
				w.ledger.expired++
			}
		}
		if c.after == nil {
			for _, m := range w.machines() {
				if claimUID(m) == c.before.GetUID() {
					w.fail("%s is deleted before its Machine %s", c.name, m.Name)
				}
			}
		}
		w.checkProviderIDs()
	}
}

// checkMachine checks that no Machine that serves a live claim is deleted, or gets another claim.
func (w *simulation) checkMachine(c *change, before, after *clusterv1.Machine) {
	if before == nil {
		return
	}
	if w.own[c.name] && (after == nil || leaving(after) || claimUID(after) != "") {
		w.fail("Machine %s, which existed before the adoption, is leaving or linked", c.name)
	}
	if c.actor == "provider" && !leaving(before) && after != nil && leaving(after) && !w.ended[c.name] && !w.isKnownLoss(before) {
		w.fail("Machine %s is removed by the provider, and was not marked: it could have been any", c.name)
	}
	if after != nil && !leaving(before) && leaving(after) {
		w.noteMark(after)
	}
	uid, served := w.serves(before)
	if served && (after == nil || leaving(after)) && (w.ended[c.name] || w.isKnownLoss(before)) {
		return
	}
	if served && (after == nil || leaving(after)) {
		w.fail("Machine %s, which serves live claim %s, is leaving", c.name, uid)
	}
	if served && after != nil && claimUID(after) != uid {
		w.fail("Machine %s serves live claim %s and is unlinked from it", c.name, uid)
	}
	if after != nil && claimUID(after) != claimUID(before) && claimUID(after) != "" {
		w.noteLink(after)
		if w.liveClaim(claimUID(after)) == nil && !w.executesLate {
			w.fail("Machine %s gets claim %s, which is being deleted or no longer exists", c.name, claimUID(after))
		}
		for _, other := range w.machines() {
			if other.Name != after.Name && claimUID(other) == claimUID(after) && !leaving(other) {
				w.fail("Machine %s gets claim %s, which has Machine %s", c.name, claimUID(after), other.Name)
			}
		}
		if leaving(before) {
			w.fail("Machine %s is leaving and gets claim %s", c.name, claimUID(after))
		}
		if claimUID(before) != "" && before.Status.NodeRef.IsDefined() {
			w.fail("Machine %s was the Node of claim %s and gets claim %s", c.name, claimUID(before), claimUID(after))
		}
	}
}

// checkProviderIDs checks that a claim has its own provisional ID or that of its Machine, and that
// no two claims share one. If IDs are used again, its Machine may no longer exist.
func (w *simulation) checkProviderIDs() {
	claimOf := map[string]string{}
	for _, object := range w.server.head["NodeClaim"] {
		claim := object.(*karpv1.NodeClaim)
		id := claim.Status.ProviderID
		if id == "" {
			continue
		}
		if other, shared := claimOf[id]; shared {
			w.fail("%s and %s share provider ID %s", other, claim.Name, id)
		}
		claimOf[id] = claim.Name
		owners := w.owners[id]
		if id == planner.ProvisionalID(claim.UID) || len(owners) > 0 && owners[len(owners)-1] == claim.UID {
			continue
		}
		if !w.mode.reused || !slices.Contains(owners, claim.UID) {
			w.fail("%s (%s) has provider ID %s, whose Machine is linked to %q", claim.Name, claim.UID, id, owners)
		}
	}
}

// serves returns the live claim that a Machine serves, before this change of it: the claim it is
// linked to, unless the claim keeps another Machine.
func (w *simulation) serves(m *clusterv1.Machine) (types.UID, bool) {
	claim := w.liveClaim(claimUID(m))
	if claim == nil || leaving(m) {
		return "", false
	}
	if m.Spec.ProviderID != "" && m.Spec.ProviderID == claim.Status.ProviderID {
		return claim.UID, true
	}
	for _, object := range w.server.head["Machine"] {
		other := object.(*clusterv1.Machine)
		if other.Name == m.Name || claimUID(other) != claim.UID || leaving(other) {
			continue
		}
		older := other.CreationTimestamp.Time.Before(m.CreationTimestamp.Time) ||
			other.CreationTimestamp.Time.Equal(m.CreationTimestamp.Time) && other.Name < m.Name
		if older || other.Spec.ProviderID != "" && other.Spec.ProviderID == claim.Status.ProviderID {
			return "", false
		}
	}
	return claim.UID, true
}

// liveClaim returns a claim that is not being deleted.
func (w *simulation) liveClaim(uid types.UID) *karpv1.NodeClaim {
	for _, object := range w.server.head["NodeClaim"] {
		if claim := object.(*karpv1.NodeClaim); uid != "" && claim.UID == uid && claim.DeletionTimestamp.IsZero() {
			return claim
		}
	}
	return nil
}

func claimUID(m *clusterv1.Machine) types.UID { return types.UID(m.Labels[v1alpha1.NodeClaimUIDLabel]) }

// leaving reports whether a Machine is being deleted, or is marked for deletion.
func leaving(m *clusterv1.Machine) bool {
	_, chosen := m.Annotations[clusterv1.DeleteMachineAnnotation]
	return chosen || !m.DeletionTimestamp.IsZero()
}
