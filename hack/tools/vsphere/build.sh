#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Puts Cluster API Provider vSphere into the folder $1: its manager, its CustomResourceDefinitions in crds, and its webhook
# configurations in webhooks.yaml. The manager is built from a copy of its module with one change, as those of Cluster API are: its
# webhook server listens on 127.0.0.1.

set -euo pipefail

mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

provider=sigs.k8s.io/cluster-api-provider-vsphere
go mod download $provider # Without it, go list has no folder on a new machine.
module=$(go list -m -f '{{.Dir}}' $provider)
cp -R "$module" "$work/provider"
chmod -R u+w "$work/provider"

sed '/webhookOpts\.TLSOpts = /a webhookOpts.Host = "127.0.0.1"' "$module/main.go" >"$work/provider/main.go"
if cmp -s "$module/main.go" "$work/provider/main.go"; then
	echo "main.go of $provider no longer has webhookOpts.TLSOpts: find out how this version sets the webhook's address" >&2
	exit 1
fi

cp go.mod go.sum "$work"
go mod edit -replace="$provider=$work/provider" "$work/go.mod"
go build -modfile="$work/go.mod" -trimpath -ldflags '-s -w' -o "$out/manager" $provider

rm -rf "$out/crds"
cp -R "$work/provider/config/default/crd/bases" "$out/crds"
cp "$work/provider/config/govmomi/webhook/manifests.yaml" "$out/webhooks.yaml"
