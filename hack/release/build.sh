#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Writes what a release consists of, besides its image, into the empty folder $3: for version $1, with the operator's
# image $2. The same commit gives the same bytes.
#
#   addon-components.yaml    what clusterctl installs
#   metadata.yaml            tells clusterctl which contract the version speaks
#   karpenter-capi-crds.yaml this project's CRD alone, for a workload cluster that is not the management cluster
#   karpenter-crds.yaml      Karpenter's CRDs
#   *.tgz                    the Helm charts
#   checksums.txt
#
# Karpenter's CRDs are not among the components: clusterctl would write over those of another Karpenter, make them its
# own, and take them away with `delete --include-crd`.

set -euo pipefail
export LC_ALL=C

version=$1 image=$2 out=$(realpath -m "$3")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

kubectl=${KUBECTL:-$PWD/bin/kubectl}
helm=${HELM-$PWD/bin/helm}

fail() {
	echo "release: $*" >&2
	exit 1
}

[[ $version =~ ^v([0-9]+)\.([0-9]+)\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "'$version' is no version like v0.1.0: set VERSION"
grep -A1 "major: ${BASH_REMATCH[1]}\$" metadata.yaml | grep -q "minor: ${BASH_REMATCH[2]}\$" ||
	fail "metadata.yaml has no release series for $version: add it"
[[ $image =~ ^[^/]*[.:][^/]*/[^@]+[:@] ]] || fail "clusterctl takes images by their full name only, as registry.example/name:tag: not '$image'"
mkdir -p "$out"
[[ -z $(ls -A "$out") ]] || fail "$out is not empty"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# kustomize wants its bases by relative paths.
cat >"$work/kustomization.yaml" <<YAML
resources:
  - $(realpath --relative-to="$work" config/clusterctl)
patches:
  - target:
      kind: Deployment
    patch: |
      - op: replace
        path: /spec/template/spec/containers/0/image
        value: $image
YAML
"$kubectl" kustomize "$work" >"$out/addon-components.yaml"
"$kubectl" kustomize config/crd >"$out/karpenter-capi-crds.yaml"
cat "$(go list -m -f '{{.Dir}}' sigs.k8s.io/karpenter)"/pkg/apis/crds/*.yaml >"$out/karpenter-crds.yaml"
cp metadata.yaml "$out"

# helm writes the time into its archives, so they are packed once more, without it.
for chart in charts/*/Chart.yaml; do
	# Without a helm, asked for by an empty HELM, there are no charts: it is not needed to test all else.
	[[ -e $chart && -n $helm ]] || continue
	name=$(basename "$(dirname "$chart")")
	"$helm" package "charts/$name" --version "${version#v}" --app-version "$version" --destination "$work" >/dev/null
	mkdir "$work/$name"
	tar -xmzf "$work/$name-${version#v}.tgz" -C "$work/$name"
	tar -C "$work/$name" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w -cf - "$name" |
		gzip -9n >"$out/$name-${version#v}.tgz"
done

chmod -R u=rwX,go=rX "$out"
cd "$out"
sha256sum -- * >"$work/checksums.txt"
cp "$work/checksums.txt" .
