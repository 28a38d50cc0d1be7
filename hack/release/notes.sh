#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Prints the section of CHANGELOG.md about version $1, for the notes of its release.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

notes=$(awk -v version="$1" '/^## /{of = ($2 == version); next} of' CHANGELOG.md)
if [[ -z ${notes//[[:space:]]/} ]]; then
	echo "release: CHANGELOG.md has no section '## $1'" >&2
	exit 1
fi
printf '%s\n' "$notes" | sed '1{/^$/d}'
