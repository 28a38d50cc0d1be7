#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds a manager of Cluster API, such as core or bootstrap/kubeadm, into the file $2, with one change: its webhook server
# listens on 127.0.0.1. Upstream it listens on all addresses, no flag changes that, and processes of tests must not be
# reachable from other machines. The changed line is in package main, which imports internal packages, and `go build -overlay`
# rejects files of the module cache. Therefore the module is built from a copy, with this folder's go.mod and one more replace.
#
# With a version as $3, which ../versions.txt must have, the copy is of that version, and is built with its own go.mod.

set -euo pipefail

manager=$1
out=$(realpath -m "$2")
version=${3:-}
cd "$(dirname "${BASH_SOURCE[0]}")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [[ -n $version ]]; then
	module=$(../download.sh sigs.k8s.io/cluster-api "$version")
else
	go mod download sigs.k8s.io/cluster-api # Without it, go list has no folder on a new machine.
	module=$(go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)
fi
cp -R "$module" "$work/cluster-api"
chmod -R u+w "$work/cluster-api"

# Up to v1.13, the core manager is the root of the module.
package=$manager
if [[ ! -e $module/$package/main.go ]]; then
	package=.
fi
main=$package/main.go
sed '/webhook\.Options{/a Host: "127.0.0.1",' "$module/$main" >"$work/cluster-api/$main"
if cmp -s "$module/$main" "$work/cluster-api/$main"; then
	echo "$main of Cluster API no longer has webhook.Options{: find out how this version sets the webhook's address" >&2
	exit 1
fi

if [[ -z $version ]]; then
	cp go.mod go.sum "$work"
	go mod edit -replace="sigs.k8s.io/cluster-api=$work/cluster-api" "$work/go.mod"
	go build -modfile="$work/go.mod" -trimpath -ldflags '-s -w' -o "$out" "sigs.k8s.io/cluster-api/$manager"
	exit
fi
cd "$work/cluster-api"
# The Go module of its API is a folder beside it, which the module in the cache lacks.
if grep -q '^replace sigs.k8s.io/cluster-api/api => ./api$' go.mod; then
	api=$("$OLDPWD/../download.sh" sigs.k8s.io/cluster-api/api "$version")
	go mod edit -replace="sigs.k8s.io/cluster-api/api=$api"
fi
go build -trimpath -ldflags '-s -w' -o "$out" "./$package"
