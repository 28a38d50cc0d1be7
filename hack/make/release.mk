# SPDX-License-Identifier: Apache-2.0

##@ Release

# The operator's image in the released manifests.
RELEASE_IMG ?= ghcr.io/karpenter-capi/karpenter-capi:$(VERSION)

# What the kubectl plugin is built for.
PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

.PHONY: release
release: bin/kubectl $(if $(wildcard charts/*/Chart.yaml),bin/helm) ## Write the files of a release into out/ (VERSION=v0.1.0).
	@rm -rf out
	@PLUGIN_PLATFORMS='$(PLUGIN_PLATFORMS)' hack/release/build.sh '$(VERSION)' '$(RELEASE_IMG)' out
	@echo "==> out/"; cat out/checksums.txt

.PHONY: test-install-clusterctl
test-install-clusterctl: stack-binaries bin/clusterctl ## Install, upgrade and remove the operator with clusterctl, on the local stack.
	@go test -tags install -count=1 -timeout 30m $(TEST_FLAGS) ./test/install/clusterctl

.PHONY: test-install-upgrade
test-install-upgrade: stack-binaries bin/clusterctl bin/helm ## Upgrade the operator from the last version, and go back, with Helm and clusterctl in each placement.
	@go test -trimpath -vet=off -tags install -count=1 -timeout 90m $(TEST_FLAGS) ./test/install/upgrade

.PHONY: test-install
test-install: ## Run all installation tests.
	@$(MAKE) test-image
	@$(MAKE) test-charts test-install-helm
	@$(MAKE) test-install-clusterctl
	@echo "install: ok"
