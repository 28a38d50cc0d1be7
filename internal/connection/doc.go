// SPDX-License-Identifier: Apache-2.0

// Package connection records whether the API server of a cluster can be reached, whether the caches of it
// are known to be behind, and when that was last in doubt. An outage is not absence: what a cache lacks
// during an outage may exist (docs/design/outages.md).
//
// Package operator makes one Connection for each of the two clusters and puts its Transport around that of
// all clients of the cluster. So it sees each request, its answer, and how each watch ends. Package
// cloudprovider and the controllers ask it, through clients.Clusters.
//
// Three things are distinguished:
//
//   - interrupted: the last request failed and none was answered since, a watch has ended and was not opened
//     again, or the cache was not filled yet. Then nothing is decided from what the cache lacks.
//     A refused request (429) is an answer, but a watch that stays refused is not open.
//   - disturbed: something could hide a write or an event of Machines or MachinePools from a client: a request
//     failed, a watch of these kinds was broken or was opened again after that, the process started, or it
//     gained the lease. A webhook that does not answer, and the watch of another kind, can hide neither.
//   - an outage: an interruption that lasted longer than brief. Timers that run over it start again.
//
// All times are durations of an injected clock that no one sets: in production that of the process, which
// is monotonic. The clock of the machine can jump by an hour. A crash loses all of it, and the start of the
// next process counts as a disturbance.
package connection
