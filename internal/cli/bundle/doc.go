// SPDX-License-Identifier: Apache-2.0

// Package bundle collects what a bug report needs from both clusters, in an archive that people can attach to a public issue.
//
// What could be secret is left out by what it is, and not only by how it looks:
//
//   - Secrets and ConfigMaps are not read.
//   - Of infrastructure and bootstrap objects, and of every other kind whose fields the operator does not know, only the metadata
//     and the status are taken. The spec of a bootstrap object has join tokens, passwords, files and commands, and that of an
//     infrastructure object can have user data and credentials of a cloud.
//   - The values of patches of bootstrap templates become bootstrap data, so templates have only their paths. Those of infrastructure
//     templates stay: without them nobody can see why an offering is wrong.
//   - Of the topology of a Cluster only its class and version stay, because its variables have values for every purpose.
//   - The Pods of the operator have no values of environment variables, and only the log of the operator's own container is read.
//   - The annotation of kubectl apply and managed fields are removed from all objects.
//
// Messages, events and logs are text of others, and can repeat a credential. So every text is searched for what has the form of
// one, as a second net.
//
// An object that cannot be read is listed in errors.txt. The archive of the same objects is the same to the byte.
package bundle
