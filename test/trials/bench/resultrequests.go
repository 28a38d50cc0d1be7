// SPDX-License-Identifier: Apache-2.0

package bench

// sum returns how many requests of the selected kinds the process sent in which Karpenter runs.
func (r *result) sum(selected func(requestKind) bool) int {
	return sum(r.Requests, func(kind requestKind) bool { return kind.Component == r.variant().agent && selected(kind) })
}

func (r *result) conflicts() float64 {
	writes := r.sum(isMachineWrite)
	if writes == 0 {
		return 0
	}
	return float64(r.sum(isMachineConflict)) / float64(writes)
}

func (r *result) requests() float64 {
	return r.each(r.sum(func(requestKind) bool { return true }))
}

func (r *result) refused() float64    { return r.each(r.sum(isRefused)) }
func (r *result) liveReads() float64  { return r.each(r.sum(isLiveReadOfClaim)) }
func (r *result) otherReads() float64 { return r.each(r.sum(isLiveRead) - r.sum(isLiveReadOfClaim)) }

func (r *result) machineWrites() float64  { return r.each(r.sum(isMachineWrite)) }
func (r *result) ownClaimWrites() float64 { return r.each(r.ClaimWrites.Own) }
func (r *result) claimWrites() float64    { return r.each(r.sum(isClaimWrite)) }
func (r *result) templateWrites() float64 { return r.each(r.sum(isTemplateWrite)) }

// ownWrites are the writes of the operator's own code, except for events, which core's code publishes with the same
// recorder.
func (r *result) ownWrites() float64 {
	return r.machineWrites() + r.ownClaimWrites() + r.templateWrites() + r.each(r.sum(isScalableWrite))
}

func (r *result) clusterAPIConflicts() float64 { return r.each(r.ClusterAPIConflicts) }
