// SPDX-License-Identifier: Apache-2.0

// Package lanes limits how many requests of this process an API server works on at once, and sends those first for
// which a user waits.
//
// Karpenter core works on up to 1,000 objects of each kind at once. An API server with API Priority and Fairness works
// on some requests of a user and queues 300 more (k8s.io/apiserver: pkg/apis/flowcontrol/bootstrap/default.go: 6 queues
// of 50). It refuses all others with 429, and client-go waits a second or more before it sends them again. Refused are
// those that happen to come last. With a limit the requests wait here instead, and in an order:
//
//   - urgent: what the operator's own controllers send to link Machines and to set provider IDs, and all reads
//   - usual: all other requests
//   - events: client-go sends them one by one, and drops events if a thousand wait
//
// Each lane has some slots for itself, so that none starves, and none stops because the requests of another take long. Events
// have no others, so that they delay nothing.
//
// Watches and requests for Leases do not wait: watches have no end, and the process ends without its Lease.
//
// A request has its slot until the client has read the answer, and not only until the answer begins. The API server
// works on it as long, because it cannot write a large list faster than the client reads it.
package lanes
