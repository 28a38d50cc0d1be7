# SPDX-License-Identifier: Apache-2.0

# The same layers and settings as those of `make image`: see hack/image, whose tests compare them with the last stage.
#
# The base image is pinned by its digest; the tag only says of what.
# The builder runs on the machine's own platform and compiles for the image's.
FROM --platform=$BUILDPLATFORM public.ecr.aws/docker/library/golang:1.26@sha256:3aff6657219a4d9c14e27fb1d8976c49c29fddb70ba835014f477e1c70636647 AS builder

# go.mod asks for a patch release; if the image has an older one, it comes as a Go module, which is checked like all others.
ENV GOTOOLCHAIN=auto

WORKDIR /src

COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod \
    go mod download

COPY hack/image/ hack/image/
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    go run ./hack/image files /out/files

COPY api/ api/
COPY charts/ charts/
COPY cmd/ cmd/
COPY internal/ internal/

ARG TARGETOS
ARG TARGETARCH
# As late as possible: all later steps run again when they change.
ARG LDFLAGS
# With a newer patch release than that of go.mod, the binaries would differ from those of `make image`.
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    export CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} GOTOOLCHAIN="go$(sed -n 's/^go //p' go.mod)" && \
    go build -trimpath -buildvcs=false -ldflags "${LDFLAGS}" -o /out/karpenter-capi ./cmd && \
    go build -trimpath -buildvcs=false -ldflags "${LDFLAGS}" -o /out/kubectl-karpenter_capi ./cmd/kubectl-karpenter_capi

FROM scratch

# Users and groups, CA certificates and /tmp.
COPY --from=builder /out/files/ /
# The plugin is for Jobs that refresh catalogs: config/samples/catalog-refresh.
COPY --from=builder /out/karpenter-capi /out/kubectl-karpenter_capi /

ENV PATH=/
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
ARG VERSION=dev
LABEL org.opencontainers.image.licenses=Apache-2.0
LABEL org.opencontainers.image.source=https://github.com/karpenter-capi/karpenter-capi
LABEL org.opencontainers.image.version=${VERSION}
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/karpenter-capi"]
