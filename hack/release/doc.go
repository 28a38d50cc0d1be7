// SPDX-License-Identifier: Apache-2.0

// Package release has build.sh, which writes the files of a release, and tests of these files: whether
// addon-components.yaml and metadata.yaml follow clusterctl's contract for providers
// (https://cluster-api.sigs.k8s.io/developer/providers/contracts/clusterctl).
package release
