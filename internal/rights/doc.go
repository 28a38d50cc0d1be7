// SPDX-License-Identifier: Apache-2.0

// Package rights has the rights that the operator needs in both clusters, from the rules of its roles. The operator reviews its own
// at its start, and the kubectl plugin those of the operator's user. Which are missing is decided by the API server.
package rights
