// SPDX-License-Identifier: Apache-2.0

// Package tenancy decides what a template may reach in the management cluster: which base templates and
// Secrets it may refer to, and which labels, annotations and fields it may set. Users who write templates in
// a workload cluster have no rights in the management cluster, and the operator acts there for them.
//
// Rules are what the options of the operator allow. Own is what the served Cluster uses already. Allowed
// decides by both. Package generate asks it for everything that it generates, so that a launch, a dry run
// and a condition of the template give the same answer. Everything here is pure.
package tenancy
