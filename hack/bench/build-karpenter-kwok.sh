#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds Karpenter with its own simulated provider, kwok, into the file $1. It is a package of the Karpenter module in the
# version of go.mod, with one change: its endpoints for metrics and health listen on 127.0.0.1. Upstream they listen on all
# addresses, no flag changes that, and processes of tests must not be reachable from other machines. `go build -overlay`
# rejects files of the module cache. Therefore the module is built from a copy, with this module's go.mod and one more
# replace.

set -euo pipefail

out=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

go mod download sigs.k8s.io/karpenter # Without it, go list has no folder on a new machine.
karpenter=$(go list -m -f '{{.Dir}}' sigs.k8s.io/karpenter)
cp -R "$karpenter" "$work/karpenter"
chmod -R u+w "$work/karpenter"

file=pkg/operator/operator.go
sed 's/fmt\.Sprintf(":%d", /fmt.Sprintf("127.0.0.1:%d", /' "$karpenter/$file" >"$work/karpenter/$file"
if [[ $(diff "$karpenter/$file" "$work/karpenter/$file" | grep -c '^>') != 2 ]]; then
	echo "$karpenter/$file no longer has two addresses with ':%d': find out how this version sets its addresses" >&2
	exit 1
fi

cp go.mod go.sum "$work"
go mod edit -replace="sigs.k8s.io/karpenter=$work/karpenter" "$work/go.mod"
go build -modfile="$work/go.mod" -trimpath -ldflags '-s -w' -o "$out" sigs.k8s.io/karpenter/kwok
