// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"net/http"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
)

// clusterAPIAgent is the user agent of Cluster API's controllers.
const clusterAPIAgent = "cluster-api-core"

// linkRequests returns the time between the request that created a Machine and the operator's first write of it, which is
// the link. These are the times of the API server. Those of a watch are later if the API server is busy, and so is
// everything that the operator sees.
func linkRequests(entries []audit.Entry) []time.Duration {
	created, linked := map[string]time.Time{}, map[string]time.Time{}
	for i := range entries {
		entry := &entries[i]
		if entry.ObjectRef.Resource != "machines" || entry.ObjectRef.Subresource != "" {
			continue
		}
		name := entry.ObjectRef.Name
		switch {
		case entry.ResponseStatus.Code == http.StatusCreated: // by a create, or by a server-side apply
			created[name] = entry.StageTimestamp
		case entry.By(operatorAgent) && entry.Verb == "patch" && entry.Succeeded() && linked[name].IsZero():
			linked[name] = entry.StageTimestamp
		}
	}
	var durations []time.Duration
	for name, at := range linked {
		if began, known := created[name]; known {
			durations = append(durations, at.Sub(began))
		}
	}
	return durations
}

// clusterAPIConflicts returns how many writes of Machines by Cluster API failed because the Machine had changed.
func clusterAPIConflicts(entries []audit.Entry) int {
	count := 0
	for i := range entries {
		entry := &entries[i]
		if entry.By(clusterAPIAgent) && entry.ObjectRef.Resource == "machines" && entry.ResponseStatus.Code == http.StatusConflict {
			count++
		}
	}
	return count
}
