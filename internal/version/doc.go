// SPDX-License-Identifier: Apache-2.0

// Package version decides which Kubernetes version new Machines of a template get, and whether
// Cluster API would create Machines of that version.
//
// Read reads what the control plane of the served Cluster reports. Of decides, without reading
// anything. Its checks are those that a MachineSet makes before it creates Machines (Cluster API:
// core/reconcilers/machineset/machineset_preflight.go), so that nothing is launched that Cluster
// API would not create.
package version
