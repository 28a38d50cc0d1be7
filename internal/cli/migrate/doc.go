// SPDX-License-Identifier: Apache-2.0

// Package migrate plans the migration from another autoscaler: from what both clusters have, it makes the objects of the
// workload cluster that adopt existing MachineDeployments, and the steps before, after and back.
//
// Read is the only function that reads. ClusterAutoscaler and OtherProvider decide. Nothing is written here.
package migrate
