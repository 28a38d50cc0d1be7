#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Prints the folder with the source of the Go module $1 in the version $2. versions.txt must have it, with the checksum.

set -euo pipefail

versions=$(realpath "$(dirname "${BASH_SOURCE[0]}")/versions.txt")
sum=$(awk -v module="$1" -v version="$2" '$1 == module && $2 == version { print $3 }' "$versions")
if [[ -z $sum ]]; then
	echo "$1 $2 is not in hack/tools/versions.txt. These versions are:$(awk -v module="$1" '$1 == module { printf " %s", $2 }' "$versions")" >&2
	exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# field prints a field of the JSON that `go mod download -json` prints.
field() {
	sed -n 's/^[[:space:]]*"'"$1"'": "\(.*\)",\{0,1\}$/\1/p' download.json
}

if ! go mod download -json "$1@$2" >download.json; then
	echo "downloading $1@$2: $(field Error)" >&2
	exit 1
fi
if [[ $(field Sum) != "$sum" ]]; then
	echo "the checksum of $1@$2 is $(field Sum), expected $sum" >&2
	exit 1
fi
field Dir
