#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Writes CustomResourceDefinitions of Cluster API and of its providers into the folder $1, one folder for each provider.
# modules.txt has their Go modules with checksums, which must match. The version of Cluster API is that of go.mod, and its
# checksum is in go.sum.

set -euo pipefail

out=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# field prints a field of the JSON that `go mod download -json` prints.
field() {
	sed -n 's/^[[:space:]]*"'"$1"'": "\(.*\)",\{0,1\}$/\1/p' "$work/download.json"
}

# download prints the folder with the source of the Go module $2. It runs in the folder $1, whose go.mod applies.
download() {
	if ! (cd "$1" && go mod download -json "$2") >"$work/download.json"; then
		echo "downloading $2: $(field Error)" >&2
		return 1
	fi
	field Dir
}

# copy copies files of a module into the provider's folder.
copy() {
	local provider=$1 source=$2
	shift 2
	mkdir -p "$work/crds/$provider"
	(cd "$source" && install -m 0644 -t "$work/crds/$provider" "$@")
}

source=$(download . sigs.k8s.io/cluster-api)
copy cluster-api "$source/core/config/crd/bases" cluster.x-k8s.io_{clusters,machinedeployments,machinepools,machines,machinesets}.yaml
copy cluster-api "$source/bootstrap/kubeadm/config/crd/bases" bootstrap.cluster.x-k8s.io_kubeadmconfig{s,templates}.yaml

while read -r provider module version sum files; do
	source=$(download "$work" "$module@$version")
	if [[ "$(field Sum)" != "$sum" ]]; then
		echo "the checksum of $module@$version is $(field Sum), expected $sum" >&2
		exit 1
	fi
	# shellcheck disable=SC2086 # the last field is a list
	copy "$provider" "$source" $files
done < <(grep -v '^#' modules.txt)

rm -rf "$out"
mkdir -p "$(dirname "$out")"
cp -R "$work/crds" "$out"
