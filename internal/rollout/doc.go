// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which outdated NodeClaims of a template with spec.rollout may be replaced now.
//
// Next gets the rollout in the status, the revision that the template generates now, and its claims with
// their health, and returns the next state. The controller machinetemplate writes that to the status.
// MayReplace reads only the status: CloudProvider.IsDrifted reports a claim as drifted if it is outdated
// and MayReplace allows it. Karpenter core does the rest, within the disruption budgets.
//
// The package is pure. It keeps these invariants:
//   - Nothing may be replaced before the status has the present revision, while a rollout is paused, or
//     after it has stopped.
//   - Until the soak time is over, only the claims in status.rollout.canary may be replaced. These are
//     chosen once, and again only if all of them have ended and no claim is new.
//   - A rollout stops when a claim that was created since its start fails.
//
// All state is in one part of the status, so each step is one write. After a crash before the write,
// the same claims give the same step.
package rollout
