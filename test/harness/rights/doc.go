// SPDX-License-Identifier: Apache-2.0

// Package rights compares the rights that the operator has with the requests that it sends. A right is one verb on one
// resource in one of the roles of config/rbac. The e2e tests collect the audit logs of all their stacks: no request is
// denied, and each right is used. The file unused.yaml explains the rights that no e2e test can use.
package rights
