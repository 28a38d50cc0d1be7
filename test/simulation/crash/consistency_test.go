// SPDX-License-Identifier: Apache-2.0

package crash

import "time"

// capiBound is how long the cache of Cluster API can withhold changes at a time.
const capiBound = 3 * time.Second

// capiKinds are the kinds in the cache of Cluster API's controllers of MachineDeployments and
// MachineSets. Each lags independently.
var capiKinds = []string{"MachineDeployment", "MachineSet", "Machine"}

// capiSees returns the view of these controllers, and whether it contains the acting controller's
// own writes of a kind: otherwise the controller waits (util/controller,
// DeferNextReconcileUntilCacheUpToDate). It does not wait for writes of other controllers.
func (w *simulation) capiSees(written string) (view, bool) {
	if !w.mode.peers && len(w.capi.frozen) == 0 {
		return w.server.head, true
	}
	w.capi.catchUp(w.mode.lag(), func(*change) {})
	for _, change := range w.server.log[written][w.capi.at[written]:] {
		if change.actor == w.server.actor {
			return nil, false
		}
	}
	return w.capi.view, true
}

// slowToSee withholds the changes of MachineDeployments from their controller for some time.
func slowToSee(long time.Duration) func(*simulation) {
	return func(w *simulation) {
		w.capi.catchUp(nil, func(*change) {})
		w.capi.frozen["MachineDeployment"] = w.clock.Now().Add(long)
	}
}
