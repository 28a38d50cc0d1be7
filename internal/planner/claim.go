// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"strings"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
)

// linksByClaim has whether each claim has Machines. Leaving Machines count, too.
type linksByClaim map[types.UID]linked

// linked is what the Machines of a claim are.
type linked struct {
	// any reports whether a Machine is linked to the claim, and live whether one that is not leaving is. open reports whether a
	// link to it is being written.
	any, live, open bool
}

// linksOf returns the links of the Machines of a state. byName finds the same Machines. A Machine whose link is being
// written is treated as linked if its claim still exists and has no Machine. Otherwise the link will not be written,
// or is removed again.
func linksOf(claims []Claim, machines []Machine, byName map[string]*Machine, open map[types.UID]string) linksByClaim {
	found := make(linksByClaim, len(machines))
	for _, machine := range machines {
		if uid := machine.Claim; uid != "" {
			of := found[uid]
			found[uid] = linked{any: true, live: of.live || !machine.Leaving}
		}
	}
	if len(open) == 0 {
		return found
	}
	for _, claim := range claims {
		name, opening := open[claim.UID]
		of := found[claim.UID]
		if !opening || claim.Leaving || of.live {
			continue
		}
		if machine, exists := byName[name]; exists && machine.Claim == "" {
			of.open = true
			found[claim.UID], machine.Claim = of, claim.UID
		}
	}
	return found
}

// overLimit reports whether a claim gets no Machine because a limit is reached.
func (p *planning) overLimit(c Claim) bool {
	its := p.links[c.UID]
	return c.OverLimit && !its.any && !its.open
}

// nameTaken reports whether the resource was generated from something else than the Machine of a claim would be.
// Before the resource exists, it has the hash of its oldest claim. Adopted resources and their claims have no hash.
func (s *State) nameTaken(c Claim) bool { return c.Hash != "" && s.Hash != "" && c.Hash != s.Hash }

// launches reports whether the launch of a claim goes on. In a Cluster that is being deleted, claims end without a failure. Claims
// of a suspended resource wait.
func (p *planning) launches(claim Claim) bool {
	return claim.NeedsMachine && !p.ClusterDeleting && !p.Suspended
}

// needsMachine reports whether a claim should get a Machine if it has none. A claim that exceeds a
// limit gets none, nor does one of another or of a suspended resource, or of a Cluster that is being deleted.
func (p *planning) needsMachine(c Claim) bool {
	return p.launches(c) && !p.overLimit(c) && !p.nameTaken(c)
}

// actedAt returns when Cluster API last created a Machine, or resumed the resource after a pause. The time for which
// claims wait counts from then.
func (s *State) actedAt() time.Time {
	acted := s.ResumedAt
	for i := range s.Machines {
		acted = lo.Latest(acted, s.Machines[i].Created)
	}
	return acted
}

// launchSince returns the time from which the Machine of a claim could have got a provider ID.
func (s *State) launchSince(c Claim, m Machine) time.Time {
	return lo.Latest(s.startedAt(m), c.ResumedAt)
}

// provisionalScheme is used by no infrastructure, so a provisional ID is never equal to the provider
// ID of a Machine or a Node.
const provisionalScheme = "nodeclaim://"

// ProvisionalID returns the provider ID that a claim has until its Machine has one. It completes
// Karpenter's cluster state at once. Without it, the whole cluster would wait for the slowest
// machine (karpenter: pkg/controllers/state/cluster.go, Synced). It is unique, because Karpenter
// fails if two claims have one ID.
func ProvisionalID(claim types.UID) string {
	return provisionalScheme + string(claim)
}

// ParseProvisionalID returns the claim of a provisional ID, and false for any other ID.
func ParseProvisionalID(providerID string) (types.UID, bool) {
	uid, ok := strings.CutPrefix(providerID, provisionalScheme)
	return types.UID(uid), ok
}
