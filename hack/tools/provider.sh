#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Functions for the scripts that put an infrastructure provider of Cluster API into a folder: its manager, its CustomResourceDefinitions
# in crds, and its webhook configurations in webhooks.yaml. The scripts are in the folders of the modules, which pin the providers.

# build_provider builds the manager of the Go module $2 into the folder $1, from a copy with one change, as those of Cluster API are: its
# webhook server listens on 127.0.0.1. The line $4 follows the first line of main.go that matches $3. work is the folder of the copy.
build_provider() {
	local out=$1 provider=$2 anchor=$3 line=$4
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT

	go mod download "$provider" # Without it, go list has no folder on a new machine.
	local module
	module=$(go list -m -f '{{.Dir}}' "$provider")
	cp -R "$module" "$work/provider"
	chmod -R u+w "$work/provider"

	sed "/$anchor/a $line" "$module/main.go" >"$work/provider/main.go"
	if cmp -s "$module/main.go" "$work/provider/main.go"; then
		echo "main.go of $provider no longer has $anchor: find out how this version sets the webhook's address" >&2
		exit 1
	fi

	cp go.mod go.sum "$work"
	go mod edit -replace="$provider=$work/provider" "$work/go.mod"
	go build -modfile="$work/go.mod" -trimpath -ldflags '-s -w' -o "$out/manager" "$provider"
}

# copy_manifests copies the CustomResourceDefinitions of the folder $2 and the webhook configurations of the file $3 into the folder $1.
copy_manifests() {
	rm -rf "$1/crds"
	cp -R "$work/provider/$2" "$1/crds"
	cp "$work/provider/$3" "$1/webhooks.yaml"
}
