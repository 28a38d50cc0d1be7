#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Copies the CustomResourceDefinitions and the webhook configurations of Cluster API's managers, in the version $2, which
# ../versions.txt must have, into the folder $1. There they have the paths of v1.14: core/config, bootstrap/kubeadm/config and
# controlplane/kubeadm/config.

set -euo pipefail

out=$(realpath -m "$1")
version=$2
module=$("$(dirname "${BASH_SOURCE[0]}")/../download.sh" sigs.k8s.io/cluster-api "$version")
for manager in core bootstrap/kubeadm controlplane/kubeadm; do
	source=$module/$manager
	# Up to v1.13, the core manager is the root of the module.
	if [[ ! -e $source/main.go ]]; then
		source=$module
	fi
	install -D -m 0644 -t "$out/$manager/config/crd/bases" "$source"/config/crd/bases/*.yaml
	install -D -m 0644 -t "$out/$manager/config/webhook" "$source/config/webhook/manifests.yaml"
done
