// SPDX-License-Identifier: Apache-2.0

// Package remediation restarts machines with the external remediation of Cluster API. A provider that can restart
// machines, such as Metal3, has a kind of remediation requests and one of templates for them. It works on a request until
// its creator deletes it. Cluster API's MachineHealthCheck creates and deletes them in the same way (Cluster API:
// core/reconcilers/machinehealthcheck/machinehealthcheck_controller.go).
//
// # Who decides
//
// Karpenter core decides whether and when a Node is restarted, with repair policies of the action RebootNode, within
// the disruption budgets (karpenter: pkg/controllers/disruption/repair.go). It drains the Node, calls CloudProvider.Reboot,
// waits until the Node has another boot ID and is Ready, and replaces the Node if that does not happen within 20
// minutes, or if two restarts within 24 hours did not help (karpenter: pkg/controllers/nodeclaim/reboot).
//
// Core selects a policy by the type, status and reason of a condition of the Node, and by nothing else. Whether a Node
// can be restarted depends on its template. So core reads the Nodes of templates that are Usable with other reasons: Announce
// adds a suffix to them (package corestate). The policies that restart Nodes match reasons with the suffix, and those that
// replace Nodes match the others. Nothing of that is stored. A Node of a template that cannot be used is replaced as
// if there was no remediation.
//
// # The life of a request
//
// A claim has one request at a time, with the name of its Machine. Restart writes first the annotation RemediationAnnotation
// of the claim, which names the request, and then creates the request. End deletes the request and then removes the
// annotation, when the restart has ended or the claim is being deleted. The Machine is the owner of the request,
// so that it never outlives the Machine.
//
// A request has the ID of the restart for which it was created, and so does the annotation. Restart repeats nothing that was
// done for the same restart, and first deletes a request of an earlier one. End deletes only the request of the
// annotation that it has read, so a cache that is behind does not end a later restart. A request without the ID was
// created by another, such as a MachineHealthCheck: it restarts the machine as well, and stays.
//
// After a crash
//
//   - between the annotation and the request, core calls Reboot again, with the same ID;
//   - between the request and what core writes, core calls Reboot again, which finds the request;
//   - between the deletion and the annotation, End finds no request, and removes the annotation.
package remediation
