#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Writes the files of a release, without its image, into the empty folder $3: for version $1, with the operator's image
# $2. The same commit always gives the same bytes.
#
#   addon-components.yaml    the components that clusterctl installs
#   addon-components-management.yaml  the same for an operator in the management cluster
#   metadata.yaml            the contract that the version supports, for clusterctl
#   karpenter-capi-crds.yaml this project's CRD alone, for a workload cluster that is not the management cluster
#   karpenter-crds.yaml      Karpenter's CRDs
#   *.tgz                    the Helm charts
#   kubectl-karpenter_capi-*.tar.gz  the kubectl plugin, for each of PLUGIN_PLATFORMS, such as linux/amd64; none by default
#   karpenter-capi.yaml      its manifest for krew
#   checksums.txt
#
# The components do not include Karpenter's CRDs: clusterctl would overwrite those of another Karpenter, take ownership
# of them, and delete them with `delete --include-crd`.

set -euo pipefail
export LC_ALL=C

version=$1 image=$2 out=$(realpath -m "$3")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

kubectl=${KUBECTL:-$PWD/bin/kubectl}
helm=${HELM-$PWD/bin/helm}
repository=https://github.com/karpenter-capi/karpenter-capi

fail() {
	echo "release: $*" >&2
	exit 1
}

[[ $version =~ ^v([0-9]+)\.([0-9]+)\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "'$version' is not a version such as v0.1.0: set VERSION"
grep -A1 "major: ${BASH_REMATCH[1]}\$" metadata.yaml | grep -q "minor: ${BASH_REMATCH[2]}\$" ||
	fail "metadata.yaml has no release series for $version: add it"
[[ $image =~ ^[^/]*[.:][^/]*/[^@]+[:@] ]] || fail "clusterctl requires a full image name such as registry.example/name:tag, found '$image'"
mkdir -p "$out"
[[ -z $(ls -A "$out") ]] || fail "$out is not empty"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for placement in "" -management; do
	# kustomize requires relative paths of its bases.
	cat >"$work/kustomization.yaml" <<YAML
resources:
  - $(realpath --relative-to="$work" "config/clusterctl$placement")
patches:
  - target:
      kind: Deployment
    patch: |
      - op: replace
        path: /spec/template/spec/containers/0/image
        value: $image
YAML
	"$kubectl" kustomize "$work" >"$out/addon-components$placement.yaml"
done
"$kubectl" kustomize config/crd >"$out/karpenter-capi-crds.yaml"
go mod download sigs.k8s.io/karpenter # Without it, go list has no folder on a new machine.
cat "$(go list -m -f '{{.Dir}}' sigs.k8s.io/karpenter)"/pkg/apis/crds/*.yaml >"$out/karpenter-crds.yaml"
cp metadata.yaml "$out"

# pack writes an archive of the folder $2 in $1 without times and owners.
pack() {
	tar -C "$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w -cf - "$2" | gzip -9n
}

# helm writes the time into its archives, so they are packed again without it.
for chart in charts/*/Chart.yaml; do
	# An empty HELM omits the charts, because the other files can be tested without helm.
	[[ -e $chart && -n $helm ]] || continue
	name=$(basename "$(dirname "$chart")")
	"$helm" package "charts/$name" --version "${version#v}" --app-version "$version" --destination "$work" >/dev/null
	mkdir "$work/$name"
	tar -xmzf "$work/$name-${version#v}.tgz" -C "$work/$name"
	pack "$work/$name" "$name" >"$out/$name-${version#v}.tgz"
done

platforms=
for platform in ${PLUGIN_PLATFORMS-}; do
	os=${platform%/*} arch=${platform#*/} binary=kubectl-karpenter_capi
	[[ $os != windows ]] || binary+=.exe
	archive=kubectl-karpenter_capi-$os-$arch.tar.gz
	mkdir "$work/$os-$arch"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X sigs.k8s.io/karpenter/pkg/operator.Version=$version" \
		-o "$work/$os-$arch/$binary" ./cmd/kubectl-karpenter_capi
	cp LICENSE "$work/$os-$arch"
	pack "$work/$os-$arch" . >"$out/$archive"
	platforms+="
    - selector: {matchLabels: {os: $os, arch: $arch}}
      uri: $repository/releases/download/$version/$archive
      sha256: $(sha256sum "$out/$archive" | cut -d' ' -f1)
      bin: $binary"
done
if [[ -n $platforms ]]; then
	cat >"$out/karpenter-capi.yaml" <<YAML
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: karpenter-capi
spec:
  version: $version
  homepage: $repository
  shortDescription: Explain and manage Karpenter for Cluster API
  description: |
    Shows which objects belong to a NodePool, from the template to the Node, why
    a Pod is pending, what can be bought, and what it costs. Looks for what is
    wrong in an installation, and imports catalogs of instance types.
  platforms:$platforms
YAML
fi

chmod -R u=rwX,go=rX "$out"
cd "$out"
sha256sum -- * >"$work/checksums.txt"
cp "$work/checksums.txt" .
