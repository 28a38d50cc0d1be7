// SPDX-License-Identifier: Apache-2.0

package crash

import "time"

// capiBound is for how long the cache of Cluster API holds news back at once.
const capiBound = 3 * time.Second

// capiKinds are those that Cluster API's controllers of MachineDeployments and MachineSets
// have a cache of. Each lags for itself.
var capiKinds = []string{"MachineDeployment", "MachineSet", "Machine"}

// capiSees returns what these controllers decide by, and whether that has the objects of a
// kind as the controller that acts has written them: else it waits (util/controller,
// DeferNextReconcileUntilCacheUpToDate). What others have written it does not wait for.
func (w *world) capiSees(written string) (view, bool) {
	if !w.mode.peers {
		return w.server.head, true
	}
	w.capi.catchUp(w.mode.random, func(*change) {})
	for _, change := range w.server.log[written][w.capi.at[written]:] {
		if change.actor == w.server.actor {
			return nil, false
		}
	}
	return w.capi.view, true
}
