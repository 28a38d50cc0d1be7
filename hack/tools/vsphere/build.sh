#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Puts Cluster API Provider vSphere into the folder $1: see ../provider.sh.

set -euo pipefail

mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=hack/tools/provider.sh
source ../provider.sh

build_provider "$out" sigs.k8s.io/cluster-api-provider-vsphere 'webhookOpts\.TLSOpts = ' 'webhookOpts.Host = "127.0.0.1"'
copy_manifests "$out" config/default/crd/bases config/govmomi/webhook/manifests.yaml
