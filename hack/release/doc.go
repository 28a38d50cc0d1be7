// SPDX-License-Identifier: Apache-2.0

// Package release has build.sh, which writes the files of a release, and the tests of what it writes: whether
// addon-components.yaml and metadata.yaml are what clusterctl's contract for providers asks for
// (https://cluster-api.sigs.k8s.io/developer/providers/contracts/clusterctl).
package release
