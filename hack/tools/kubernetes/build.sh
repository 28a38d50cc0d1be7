#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds the programs of Kubernetes that the local stack needs into the folder $1, in the version $2, which ../versions.txt must
# have, with the flags $3 for the linker.
#
# Kubernetes' own go.mod takes the modules of its staging folder from there, which the module in Go's cache lacks. The same commit
# has published them: v0.34.4 belongs to v1.34.4. All others have the versions and the checksums of Kubernetes.

set -euo pipefail

out=$(realpath -m "$1")
version=$2
ldflags=$3
module=$("$(dirname "${BASH_SOURCE[0]}")/../download.sh" k8s.io/kubernetes "$version")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$module/." "$work"
chmod -R u+w "$work"
cd "$work"
sed -i -E 's|=> ./staging/src/(.*)|=> \1 v0.'"${version#v1.}"'|' go.mod
mkdir -p "$out"
GOWORK=off go build -mod=mod -trimpath -ldflags "$ldflags" -o "$out/" \
	./cmd/kube-apiserver ./cmd/kube-controller-manager ./cmd/kube-scheduler ./cmd/kubectl
