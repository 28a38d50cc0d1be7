// SPDX-License-Identifier: Apache-2.0

// Package nodeclaims is the life of a NodeClaim as this operator sees it: its states, and every write of the
// operator to a NodeClaim. Package lifecycle is the same for Machines. The name is the plural, as in the API of
// Kubernetes, because "claim" is the name of variables everywhere.
//
//	      CloudProvider.Create          SetProviderID                   core
//	new ───────────────────────► launched ───────────────► with an ID ──────────► registered
//	                              │  ▲  ▲                       │                     │
//	           Stall, Reject, Fail│  │  └───────────────────────┘                     │
//	                              ▼  │Resume             ResetProviderID              │Delete
//	                  waits, or has failed ───────────────────────────────────► being deleted
//	                                                  Delete
//
//	launched    Core has stored what CloudProvider.Create has returned. The claim needs a Machine (NeedsMachine),
//	            names its scalable resource, and has its provisional provider ID. Move gives it another
//	            resource, if its template has changed before it has got a Machine.
//	waits, or   The condition MachineAvailable has the reason: Cluster API or a provider does not act on its
//	has failed  launch (Stall, until Resume), its resource cannot be created or scaled (Reject), or its launch has
//	            failed (Fail). A claim that has failed is deleted, so that core creates another.
//	with an ID  Its Machine has a provider ID, by which core finds the Node. ResetProviderID takes the ID back if
//	            the claim has lost its Machine, or ends and leaves the Machine to another claim.
//	registered  Core has registered its Node. It keeps its ID, and ReportProviderID writes whether its Machine has
//	            another one. It is deleted if its Machine, Node or instance no longer exists, or the
//	            instance is about to end.
//	being       Core drains the Node and calls CloudProvider.Delete until no Machine serves the claim.
//	deleted
//
// The condition MachineReady has the name of the Machine from SetProviderID on. If the Machine or its Node takes minutes, Wait
// writes there what the Machine waits for, and Ready that it waits no longer.
//
// NoteRemediation writes which remediation request the operator creates for the Machine of a registered claim that core restarts, and
// EndRemediation that there is none any more.
//
// In any state, Restore gives a claim the annotations that a user has removed, and RenewHashes gives it hashes
// that can be compared with present ones. Core writes what the hook of package registration sets.
//
// Controllers decide, and call one function of this package for each write:
//
//	scalableresource  Stall, Resume, Reject, Fail, Wait, Ready, Move, Restore, ResetProviderID, Delete
//	providerid        SetProviderID, ReportProviderID
//	machinehash       RenewHashes
//	interruption      Delete
//	cloudprovider     ResetProviderID, NoteRemediation
//	remediation       EndRemediation
//
// The API server checks the precondition of a write in the same request: for Delete the UID, and for the others the
// resourceVersion that was read. A list of conditions is replaced as a whole, so nothing less is enough. If the claim has
// changed or no longer exists, nothing is written, and the function returns that error (see
// requeue.AfterConflict). Delete returns none, because its claim no longer exists. After a write, the claim is as the
// API server has it, so that one reconcile can write to it several times.
//
// Each write is one request. After a crash between two writes, the claim is in one of the states above, from which the
// next reconcile decides:
//
//   - launched, and its Machine has a provider ID: it gets the ID.
//   - it has failed, and its offering is marked: it is deleted.
//   - its ID is reset, and its Machine is still linked to it: CloudProvider.Delete unlinks the Machine.
package nodeclaims
