#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds a command of Prometheus, prometheus or promtool, into the file $2. It is built in its own module, with the versions and
# checksums there: this folder's go.mod would have to list the libraries of all clouds, in which Prometheus can discover targets.
# The tag remove_all_sd leaves these out. Without the tag builtinassets, prometheus has no pages, only its API.

set -euo pipefail

command=$1
out=$(realpath -m "$2")
cd "$(dirname "${BASH_SOURCE[0]}")"

module=$(go mod download -json github.com/prometheus/prometheus | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",\{0,1\}$/\1/p')
cd "$module"
GOWORK=off go build -trimpath -tags remove_all_sd -ldflags '-s -w' -o "$out" "./cmd/$command"
