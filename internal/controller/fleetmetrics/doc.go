// SPDX-License-Identifier: Apache-2.0

// Package fleetmetrics serves metrics of what the operator manages: NodeClaims, Machines, offerings and their prices, and how
// long each phase of a launch takes. It reads caches only, and writes nothing.
//
// Gauges are computed when they are scraped, so that nothing has to follow changes, and the series of what no longer exists
// vanish. Launches are observed from the events of the informers. Each phase of a launch is observed at most once in a process:
// steps that a NodeClaim had reached before this process became the leader are never observed. Only the leader has series,
// except for those of the connections. The counters of failures and stalls have a series for each reason as soon as their template exists.
package fleetmetrics
