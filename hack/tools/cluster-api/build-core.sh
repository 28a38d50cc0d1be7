#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds Cluster API's core controllers into the file $1, with one change: their webhook server listens on 127.0.0.1.
# Upstream it listens on all addresses, no flag changes that, and processes of tests must not be reachable from
# other machines. The changed line is in package main, which imports internal packages, and `go build -overlay` rejects
# files of the module cache. Therefore the module is built from a copy, with this folder's go.mod and one more replace.

set -euo pipefail

out=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

core=$(go list -f '{{.Dir}}' sigs.k8s.io/cluster-api/core)
cp -R "$(dirname "$core")" "$work/cluster-api"
chmod -R u+w "$work/cluster-api"

sed 's/webhook\.Options{/&Host: "127.0.0.1",/' "$core/main.go" >"$work/cluster-api/core/main.go"
if cmp -s "$core/main.go" "$work/cluster-api/core/main.go"; then
	echo "$core/main.go no longer has webhook.Options{: find out how this version sets the webhook's address" >&2
	exit 1
fi

cp go.mod go.sum "$work"
go mod edit -replace="sigs.k8s.io/cluster-api=$work/cluster-api" "$work/go.mod"
go build -modfile="$work/go.mod" -trimpath -ldflags '-s -w' -o "$out" sigs.k8s.io/cluster-api/core
