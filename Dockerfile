# SPDX-License-Identifier: Apache-2.0

# The images are pinned by their digests; the tags only say of what.
# The builder runs on the machine's own platform and compiles for the image's.
FROM --platform=$BUILDPLATFORM public.ecr.aws/docker/library/golang:1.26@sha256:3aff6657219a4d9c14e27fb1d8976c49c29fddb70ba835014f477e1c70636647 AS builder

# go.mod asks for a patch release; if the image has an older one, it comes as a Go module, which is checked like all others.
ENV GOTOOLCHAIN=auto

WORKDIR /src

COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod \
    go mod download

COPY api/ api/
COPY charts/ charts/
COPY cmd/ cmd/
COPY internal/ internal/

ARG TARGETOS
ARG TARGETARCH
# As late as possible: all later steps run again when they change.
ARG LDFLAGS
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -buildvcs=false -ldflags "${LDFLAGS}" -o /out/karpenter-capi ./cmd && \
    CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -buildvcs=false -ldflags "${LDFLAGS}" -o /out/kubectl-karpenter_capi ./cmd/kubectl-karpenter_capi

FROM gcr.io/distroless/static:nonroot@sha256:f7f8f729987ad0fdf6b05eeeae94b26e6a0f613bdf46feea7fc40f7bd72953e6

# The plugin is for Jobs that refresh catalogs: config/samples/catalog-refresh.
COPY --from=builder /out/karpenter-capi /out/kubectl-karpenter_capi /
USER 65532:65532
ENTRYPOINT ["/karpenter-capi"]
