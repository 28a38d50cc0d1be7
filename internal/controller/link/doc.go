// SPDX-License-Identifier: Apache-2.0

// Package link writes the links of Machines to NodeClaims. The controller scalableresource decides which Machine serves
// which claim, asks for each link with Start, and does not wait for it: no claim waits for the link of another.
//
// A request is one link. It stays open until the link is written, or can no longer be. Its retries, and how many
// are written at once, are those of controller-runtime.
//
//  1. Nothing is written while the Cluster or the resource is paused. The claim is read from the API server: a claim
//     ends when CloudProvider.Delete finds no Machine, and a link must not be written after that.
//  2. lifecycle.Link writes the link, if the Machine still has none and is not leaving.
//  3. The Machine is reported with an event of the claim, and remembered as the API server has it until the cache has it, too (recent.go), and the resource
//     is reconciled.
//
// If the claim or the Machine has changed, nothing is written: the plan is outdated, and the next one decides again.
// After a crash nothing is open, and the next plan has the links that are missing. The API server writes a link only
// to a Machine that has none, so two writers cannot give one Machine to two claims.
package link
