# syntax=docker/dockerfile:1
# SPDX-License-Identifier: Apache-2.0

# The builder runs on the machine's own platform and compiles for the image's.
FROM --platform=$BUILDPLATFORM golang:1.26 AS builder

# go.mod may ask for a newer patch release than the image has.
ENV GOTOOLCHAIN=auto

WORKDIR /src

COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod \
    go mod download

COPY api/ api/
COPY cmd/ cmd/
COPY internal/ internal/

ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath \
      -ldflags "-s -w -X sigs.k8s.io/karpenter/pkg/operator.Version=${VERSION}" \
      -o /out/karpenter-capi ./cmd

FROM gcr.io/distroless/static:nonroot

COPY --from=builder /out/karpenter-capi /karpenter-capi
USER 65532:65532
ENTRYPOINT ["/karpenter-capi"]
