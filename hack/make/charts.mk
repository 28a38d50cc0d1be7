# SPDX-License-Identifier: Apache-2.0

# The Helm charts. hack/charts writes the parts that they share with config, and helm-docs the list of values in each README.md, from
# README.md.gotmpl and the comments in values.yaml. So `make verify` shows that they agree.

GENERATED += charts/karpenter-capi/files charts/karpenter-capi-crd/files 'charts/*/README.md'
NOT_GENERATED += ':!charts/karpenter-capi/files' ':!charts/karpenter-capi-crd/files'

##@ Helm

.PHONY: charts
charts: bin/kubectl bin/helm-docs ## Write the CRDs, the rules and the READMEs of the Helm charts.
	@echo "==> generating CRDs, rules and READMEs of the charts"
	@go run ./hack/charts bin/kubectl
	@bin/helm-docs --chart-search-root=charts --sort-values-order=file --log-level=warning

# The tests of the charts also run with all other tests.
test test-unit test-race coverage: bin/helm bin/promql-queries

.PHONY: test-charts
test-charts: bin/helm bin/promql-queries bin/promtool ## Test the Helm charts, and when their alerts fire.
	@go test $(TEST_FLAGS) ./test/manifests/charts/...

.PHONY: test-install-helm
test-install-helm: bin/helm stack-binaries $(CRDS) ## Install, upgrade, roll back and uninstall the charts on the local stack.
	@go test -tags install -count=1 -p 1 -timeout 20m $(TEST_FLAGS) ./test/install/helm/...
