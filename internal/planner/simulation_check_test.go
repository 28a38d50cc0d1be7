// SPDX-License-Identifier: Apache-2.0

package planner

import "k8s.io/apimachinery/pkg/types"

// serves reports whether a live claim keeps the Machine.
func (w *simulation) serves(m simMachine) bool {
	c := w.claim(m.Claim)
	if c == nil && m.Claim == "" && m.HasNode { // a user has removed the link
		c = find(w.now.claims, func(c simClaim) bool { return c.ProviderID == m.ProviderID })
	}
	if c == nil || c.Leaving || m.leaving() || w.isOrphan(m) {
		return false
	}
	for _, other := range w.now.machines {
		if other.Name == m.Name || other.Claim != m.Claim || other.leaving() || m.ProviderID != "" && m.ProviderID == c.ProviderID {
			continue
		}
		older := other.Created.Before(m.Created) || other.Created.Equal(m.Created) && other.Name < m.Name
		if older || other.ProviderID != "" && other.ProviderID == c.ProviderID {
			return false
		}
	}
	return true
}

// isOwn reports whether a Machine is unmanaged: it existed when the resource was adopted.
func isOwn(m simMachine) bool { return !m.Created.After(adopted) }

// check checks what must hold at every moment.
func (w *simulation) check() {
	claimOf, machineOf := map[string]types.UID{}, map[types.UID]string{}
	for _, c := range w.now.claims {
		if other, shared := claimOf[c.ProviderID]; shared {
			w.fail("claims %s and %s share provider ID %s", other, c.UID, c.ProviderID)
		}
		claimOf[c.ProviderID] = c.UID
	}
	for _, m := range w.now.machines {
		c := w.claim(claimOf[m.ProviderID])
		if m.ProviderID != "" && m.Claim != "" && c != nil && !c.Leaving && m.Claim != c.UID && !m.leaving() {
			w.fail("claim %s has the provider ID of Machine %s, which is linked to claim %q", c.UID, m.Name, m.Claim)
		}
		if other := machineOf[m.Claim]; m.Claim != "" && other != "" && !m.leaving() && !w.isOrphan(m) && !w.forgets {
			w.fail("claim %s has two Machines, %s and %s", m.Claim, other, m.Name)
		}
		if !m.leaving() && !w.isOrphan(m) {
			machineOf[m.Claim] = m.Name
		}
	}
}

// checkSettled checks what must hold when nothing is left to do: nothing is missing or left over.
func (w *simulation) checkSettled() {
	for _, c := range w.now.claims {
		m := find(w.now.machines, func(m simMachine) bool { return m.Claim == c.UID })
		if m == nil || m.leaving() || m.ProviderID != c.ProviderID || !c.registered || c.Leaving {
			w.fail("in the end: claim %+v has Machine %+v", c, m)
		}
	}
	for _, m := range w.now.machines {
		if m.Claim == "" && m.WasLinked {
			w.fail("in the end: Machine %+v serves no claim and stays", m)
		}
	}
	want, made := len(w.now.claims)+w.own, len(w.instances)
	for _, s := range w.now.sets {
		made += int(s.replicas)
	}
	if len(w.now.machines) != want || int(w.now.md.replicas) != want || made != want {
		w.fail("in the end: %d claims, %d Machines, replicas %d, of the MachineSets or instances %d", len(w.now.claims), len(w.now.machines), w.now.md.replicas, made)
	}
}
