# SPDX-License-Identifier: Apache-2.0

# The tools. Each module in hack/tools pins one set of them. Each tool is a file in bin/, which is built if it does not
# exist or its module has changed. See hack/tools/README.md.

KUBERNETES_TOOLS := bin/kube-apiserver bin/kube-controller-manager bin/kube-scheduler bin/kubectl
KWOK_TOOLS := bin/kwok bin/kwokctl
CLUSTER_API_TOOLS := bin/cluster-api-core bin/cluster-api-kubeadm-bootstrap bin/cluster-api-kubeadm-control-plane
LINT_TOOLS := bin/actionlint bin/shfmt
TOOLS = $(STACK_TOOLS) $(LINT_TOOLS) bin/controller-gen bin/golangci-lint bin/helm bin/helm-docs bin/clusterctl $(PROMETHEUS_TOOLS)

# module returns the files that determine the tools of the module $(1).
module = hack/tools/$(1)/go.mod hack/tools/$(1)/go.sum

# version returns the version of the Go module $(2) with which the tools of the module $(1) are built.
version = $(shell sed -n 's|^\(require \)\{0,1\}[[:space:]]*$(2) \(v[^ ]*\).*|\2|p' hack/tools/$(1)/go.mod)

CLUSTER_API_VERSION := $(call version,cluster-api,sigs.k8s.io/cluster-api)
KUBERNETES_VERSION := $(call version,kubernetes,k8s.io/kubernetes)

# Tests run with these versions of Cluster API and of Kubernetes, if they are given. hack/tools/versions.txt has them. By default,
# and if they are the same, tests run with those of the modules.
CAPI ?=
KUBERNETES ?=
MATRIX_CAPI := $(CAPI)
MATRIX_KUBERNETES := $(KUBERNETES)
override CAPI := $(filter-out $(CLUSTER_API_VERSION),$(CAPI))
override KUBERNETES := $(filter-out $(KUBERNETES_VERSION),$(KUBERNETES))
export CAPI KUBERNETES

OTHER_CLUSTER_API := $(CAPI:%=bin/cluster-api/%/built)
OTHER_KUBERNETES := $(KUBERNETES:%=bin/kubernetes/%/built)
STACK_TOOLS := bin/etcd $(KWOK_TOOLS) $(or $(OTHER_KUBERNETES),$(KUBERNETES_TOOLS)) $(or $(OTHER_CLUSTER_API),$(CLUSTER_API_TOOLS))

# The folder with etcd, kube-apiserver and kubectl for tests without a stack.
ENVTEST_FOLDER := $(or $(KUBERNETES:%=bin/kubernetes/%),bin)
ENVTEST_TOOLS := bin/etcd $(or $(OTHER_KUBERNETES),bin/kube-apiserver bin/kubectl)

# go-build runs go build with the arguments $(2) in the tool module $(1).
define go-build
@mkdir -p bin
@$(call quietly,cd hack/tools/$(1) && go build -trimpath $(2))
endef

# kubernetes-ldflags returns the flags for the linker for the version $(1).
kubernetes-ldflags = -s -w \
	-X k8s.io/component-base/version.gitVersion=$(1) \
	-X k8s.io/component-base/version.gitMajor=$(word 1,$(subst ., ,$(1:v%=%))) \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(1:v%=%)))

$(KUBERNETES_TOOLS) &: $(call module,kubernetes)
	@echo "==> building kube-apiserver, kube-controller-manager, kube-scheduler, kubectl $(KUBERNETES_VERSION) (about 6 minutes, once)"
	$(call go-build,kubernetes,-ldflags '$(call kubernetes-ldflags,$(KUBERNETES_VERSION))' -o $(CURDIR)/bin/ $(KUBERNETES_TOOLS:bin/%=k8s.io/kubernetes/cmd/%))
	@touch $(KUBERNETES_TOOLS)

bin/kubernetes/%/built: hack/tools/kubernetes/build.sh
	@echo "==> building kube-apiserver, kube-controller-manager, kube-scheduler, kubectl $* (about 6 minutes, once)"
	@$(call quietly,hack/tools/kubernetes/build.sh $(@D) $* '$(call kubernetes-ldflags,$*)')
	@ln -sf ../../etcd $(@D)/etcd
	@touch $@

bin/etcd: $(call module,kubernetes)
	@echo "==> building etcd $(call version,kubernetes,go.etcd.io/etcd/server/v3) (about 1 minute, once)"
	$(call go-build,kubernetes,-ldflags '-s -w' -o $(CURDIR)/$@ go.etcd.io/etcd/server/v3)
	@touch $@

$(KWOK_TOOLS) &: $(call module,kwok)
	@echo "==> building kwok, kwokctl $(call version,kwok,sigs.k8s.io/kwok) (about 2 minutes, once)"
	$(call go-build,kwok,-ldflags '-s -w' -o $(CURDIR)/bin/ $(KWOK_TOOLS:bin/%=sigs.k8s.io/kwok/cmd/%))
	@touch $(KWOK_TOOLS)

bin/cluster-api-core: MANAGER := core
bin/cluster-api-kubeadm-bootstrap: MANAGER := bootstrap/kubeadm
bin/cluster-api-kubeadm-control-plane: MANAGER := controlplane/kubeadm
$(CLUSTER_API_TOOLS): $(call module,cluster-api) hack/tools/cluster-api/build.sh
	@echo "==> building $(@F) $(CLUSTER_API_VERSION) (about 2 minutes, once)"
	@mkdir -p bin
	@$(call quietly,hack/tools/cluster-api/build.sh $(MANAGER) $@)
	@touch $@

# They are not in TOOLS, because only `make test-provider` runs them.
PROVIDERS := bin/cluster-api-provider-aws/manager bin/cluster-api-provider-vsphere/manager

bin/cluster-api-provider-aws/manager: $(call module,aws) hack/tools/aws/build.sh hack/tools/provider.sh
	@echo "==> building Cluster API Provider AWS $(call version,aws,sigs.k8s.io/cluster-api-provider-aws/v2) (about 6 minutes, once)"
	@$(call quietly,hack/tools/aws/build.sh $(@D))
	@touch $@

bin/cluster-api-provider-vsphere/manager: $(call module,vsphere) hack/tools/vsphere/build.sh hack/tools/provider.sh
	@echo "==> building Cluster API Provider vSphere $(call version,vsphere,sigs.k8s.io/cluster-api-provider-vsphere) (about 5 minutes, once)"
	@$(call quietly,hack/tools/vsphere/build.sh $(@D))
	@touch $@

bin/cluster-api/%/built: hack/tools/cluster-api/build.sh hack/tools/cluster-api/manifests.sh
	@echo "==> building Cluster API's managers $* (about 3 minutes, once)"
	@mkdir -p $(@D)
	@$(call quietly,hack/tools/cluster-api/manifests.sh $(@D) $*)
	@$(call quietly,hack/tools/cluster-api/build.sh core $(@D)/cluster-api-core $*)
	@$(call quietly,hack/tools/cluster-api/build.sh bootstrap/kubeadm $(@D)/cluster-api-kubeadm-bootstrap $*)
	@$(call quietly,hack/tools/cluster-api/build.sh controlplane/kubeadm $(@D)/cluster-api-kubeadm-control-plane $*)
	@touch $@

bin/clusterctl: $(call module,cluster-api)
	@echo "==> building clusterctl $(CLUSTER_API_VERSION) (about 1 minute, once)"
	$(call go-build,cluster-api,-ldflags '-s -w -X sigs.k8s.io/cluster-api/version.gitVersion=$(CLUSTER_API_VERSION)' -o $(CURDIR)/$@ sigs.k8s.io/cluster-api/cmd/clusterctl)
	@touch $@

# It is not in TOOLS, because only `make bench` runs it. Its module is the one that the operator is built from.
KARPENTER_VERSION = $(shell sed -n 's|^[[:space:]]*sigs.k8s.io/karpenter \(v[^ ]*\).*|\1|p' go.mod)

bin/karpenter-kwok: go.mod hack/bench/build-karpenter-kwok.sh
	@echo "==> building karpenter-kwok $(KARPENTER_VERSION) (about 1 minute, once)"
	@mkdir -p bin
	@$(call quietly,hack/bench/build-karpenter-kwok.sh $@)
	@touch $@

# They are not in TOOLS, because only `make conformance` runs them.
KARPENTER_SUITES := bin/karpenter-regression bin/karpenter-disruption

$(KARPENTER_SUITES): bin/karpenter-%: $(call module,karpenter)
	@echo "==> building Karpenter's test suite $* $(call version,karpenter,sigs.k8s.io/karpenter) (about 1 minute, once)"
	@mkdir -p bin
	@$(call quietly,cd hack/tools/karpenter && go test -c -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ sigs.k8s.io/karpenter/test/suites/$*)
	@touch $@

bin/controller-gen: $(call module,dev)
	@echo "==> building controller-gen $(call version,dev,sigs.k8s.io/controller-tools) (about 1 minute, once)"
	$(call go-build,dev,-ldflags '-s -w' -o $(CURDIR)/$@ sigs.k8s.io/controller-tools/cmd/controller-gen)
	@touch $@

# Its main package is that of kube-api-linter, which adds that linter and nothing else.
bin/golangci-lint: $(call module,dev)
	@echo "==> building golangci-lint $(call version,dev,github.com/golangci/golangci-lint/v2) (about 3 minutes, once)"
	$(call go-build,dev,-ldflags '-s -w' -o $(CURDIR)/$@ sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter)
	@touch $@

$(LINT_TOOLS) &: $(call module,lint)
	@echo "==> building actionlint $(call version,lint,github.com/rhysd/actionlint), shfmt $(call version,lint,mvdan.cc/sh/v3) (about 1 minute, once)"
	$(call go-build,lint,-ldflags '-s -w' -o $(CURDIR)/bin/ github.com/rhysd/actionlint/cmd/actionlint mvdan.cc/sh/v3/cmd/shfmt)
	@touch $(LINT_TOOLS)

# It is not in TOOLS, because only `make vulncheck` runs it.
bin/govulncheck: $(call module,govulncheck)
	@echo "==> building govulncheck $(call version,govulncheck,golang.org/x/vuln) (about 1 minute, once)"
	$(call go-build,govulncheck,-ldflags '-s -w' -o $(CURDIR)/$@ golang.org/x/vuln/cmd/govulncheck)
	@touch $@

# As in helm's own releases: without its version, helm rejects charts that require one. The Kubernetes version is the one
# that templates see if helm contacts no cluster.
helm-ldflags = -s -w \
	-X helm.sh/helm/v3/internal/version.version=$(call version,helm,helm.sh/helm/v3) \
	$(foreach package,chartutil lint/rules,\
		-X helm.sh/helm/v3/pkg/$(package).k8sVersionMajor=$(word 1,$(subst ., ,$(KUBERNETES_VERSION:v%=%))) \
		-X helm.sh/helm/v3/pkg/$(package).k8sVersionMinor=$(word 2,$(subst ., ,$(KUBERNETES_VERSION:v%=%))))

bin/helm: $(call module,helm) hack/tools/kubernetes/go.mod
	@echo "==> building helm $(call version,helm,helm.sh/helm/v3) (about 1 minute, once)"
	$(call go-build,helm,-ldflags '$(helm-ldflags)' -o $(CURDIR)/$@ helm.sh/helm/v3/cmd/helm)
	@touch $@

bin/helm-docs: $(call module,helm-docs)
	@echo "==> building helm-docs $(call version,helm-docs,github.com/norwoodj/helm-docs) (about 1 minute, once)"
	$(call go-build,helm-docs,-ldflags '-s -w' -o $(CURDIR)/$@ github.com/norwoodj/helm-docs/cmd/helm-docs)
	@touch $@

PROMETHEUS_TOOLS := bin/promql-queries bin/promtool bin/prometheus

bin/promql-queries: $(call module,prometheus) hack/tools/prometheus/queries/main.go
	@echo "==> building promql-queries $(call version,prometheus,github.com/prometheus/prometheus) (about 1 minute, once)"
	$(call go-build,prometheus,-o $(CURDIR)/$@ ./queries)
	@touch $@

bin/promtool bin/prometheus: $(call module,prometheus) hack/tools/prometheus/build.sh
	@echo "==> building $(@F) $(call version,prometheus,github.com/prometheus/prometheus) (about 3 minutes, once)"
	@mkdir -p bin
	@$(call quietly,hack/tools/prometheus/build.sh $(@F) $@)
	@touch $@

# CustomResourceDefinitions of Cluster API and its providers, for tests. The file records their modules for make.
CRDS := bin/crds/modules.txt

$(CRDS): hack/crds/modules.txt hack/crds/extract.sh go.mod
	@echo "==> extracting CRDs of Cluster API and its providers (about 1 minute, once)"
	@$(call quietly,hack/crds/extract.sh bin/crds)
	@cp hack/crds/modules.txt $@
