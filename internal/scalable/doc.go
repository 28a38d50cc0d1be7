// SPDX-License-Identifier: Apache-2.0

// Package scalable generates the scalable resources, one MachineDeployment for
// each offering of a template in use, and removes single Machines from them.
//
// A generated resource is never changed but in its replicas. Its name ends in a
// hash of all that shapes its Machines, so a changed template leads to another
// resource; what Cluster API would roll out (core/reconcilers/machinedeployment/
// mdutil/util.go) is thus never touched.
package scalable
