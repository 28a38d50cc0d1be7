# SPDX-License-Identifier: Apache-2.0

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The Go toolchain that go.mod asks for comes as a Go module, too.
export GOTOOLCHAIN := auto

# Version of the operator and name of its image.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
IMG ?= karpenter-capi:dev
PLATFORMS ?= linux/amd64
DOCKER_FLAGS ?= --load

COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS = -s -w -X sigs.k8s.io/karpenter/pkg/operator.Version=$(VERSION) \
	-X github.com/karpenter-capi/karpenter-capi/internal/build.commit=$(COMMIT)

# What `make test` runs: packages, and more flags for go test.
TEST ?= ./...
TEST_FLAGS ?=

# With which kind of scalable resource demo, chaos, partition and quiet make machines: MachineDeployment or MachinePool.
KIND ?= MachineDeployment

# Where the operator of the demo is: joined, workload or management.
PLACEMENT ?= joined

# quietly runs the command $(1) and shows its output only if it fails.
quietly = out=$$($(1) 2>&1) || { printf '%s\n' "$$out" >&2; exit 1; }

include hack/make/tools.mk
include hack/make/verify.mk
include hack/make/charts.mk
include hack/make/release.mk

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "; printf "Usage: make <target>\n"} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  %-23s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: clean
clean: ## Remove everything that was built; the tools, too.
	rm -rf bin out

##@ Development

.PHONY: generate
generate: bin/controller-gen ## Generate the deep copy functions of the API types.
	@echo "==> generating deep copy functions"
	@bin/controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/... paths=./test/harness/infrastructure/api/...

# controller-gen leaves the files of kinds and roles that are no longer there: what it did not write now, goes.
.PHONY: manifests
manifests: bin/controller-gen ## Generate the CRDs, the reference, and the operator's role.
	@echo "==> generating CRDs, the reference, and RBAC"
	@touch bin/manifests.stamp
	@bin/controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	@sed -E -i -f hack/make/crd.sed config/crd/bases/*.yaml
	@bin/controller-gen crd paths=./test/harness/infrastructure/api/... output:crd:artifacts:config=test/harness/infrastructure/config/crd
	@bin/controller-gen rbac:roleName=workload-role paths=./internal/... paths=./cmd/... output:rbac:artifacts:config=config/rbac
	@find config/crd/bases test/harness/infrastructure/config/crd config/rbac/role.yaml -name '*.yaml' ! -newer bin/manifests.stamp -delete
	@go run ./hack/docs config/crd/bases/karpenter.cluster.x-k8s.io_karpentermachinetemplates.yaml >bin/template.md
	@go run ./hack/docs config/crd/bases/karpenter.cluster.x-k8s.io_instancetypecatalogs.yaml >bin/catalog.md
	@go run ./hack/docs api/v1alpha1 >bin/conditions.md
	@go run ./hack/docs internal/metrics >bin/metrics.md
	@go run ./hack/docs reasons api/v1alpha1 >bin/reasons.txt
	@install -D -m 0644 -t docs/reference bin/template.md bin/catalog.md bin/conditions.md bin/metrics.md
	@install -m 0644 bin/reasons.txt internal/cli/why/zz_generated.reasons.go
	@$(MAKE) charts

.PHONY: docs
docs: ## Write the documentation as a web site into out/docs/, and check its links.
	@go run ./hack/site . out/docs
	@echo "docs: out/docs/index.html"

.PHONY: test-docs
test-docs: ## Search the web site in a browser, and look at its pages (needs chromium or google-chrome).
	@go test -trimpath -vet=off -tags browser -count=1 -timeout 10m $(TEST_FLAGS) -run TestBrowser ./hack/site

# The shell scripts, for shfmt.
SCRIPTS = $$(git ls-files -- '*.sh' .ci/run)

.PHONY: fmt
fmt: bin/golangci-lint bin/shfmt ## Format the Go code, sort its imports, and format the shell scripts.
	@bin/golangci-lint fmt
	@bin/shfmt -w $(SCRIPTS)

.PHONY: vet
vet: ## Run go vet, the tests with build tags included.
	@echo "==> go vet"
	@go vet ./...
	@go vet -tags browser,contract,e2e,install,provider ./...

.PHONY: lint
lint: bin/golangci-lint ## Run golangci-lint.
	@echo "==> golangci-lint"
	@bin/golangci-lint run

.PHONY: lint-api
lint-api: bin/golangci-lint ## Check that the API follows the conventions of Kubernetes.
	@echo "==> kube-api-linter"
	@bin/golangci-lint run --config .golangci-kal.yml ./api/...

.PHONY: verify
verify: ## Regenerate, check everything, and fail on any difference in generated files.
	@$(MAKE) generate manifests
	@$(MAKE) vet lint lint-api verify-format verify-tidy verify-headers verify-workflows verify-scripts verify-leftovers verify-language
	@$(MAKE) verify-generated

# Not part of verify: it needs the network, and a vulnerability that is published must not fail an unrelated change.
.PHONY: vulncheck
vulncheck: bin/govulncheck ## Look for known vulnerabilities (needs vuln.go.dev; runs nightly, not in verify).
	@echo "==> govulncheck"
	@bin/govulncheck -tags browser,contract,e2e,install,provider ./...

.PHONY: presubmit
presubmit: ## Run what every change must pass: verify and test.
	@$(MAKE) verify
	@$(MAKE) test

##@ Test

# Tests that need an API server take its binaries from KUBEBUILDER_ASSETS, or from bin/, where they are then built.
ifndef KUBEBUILDER_ASSETS
test test-integration test-race coverage deflake: $(ENVTEST_TOOLS)
export KUBEBUILDER_ASSETS := $(CURDIR)/$(ENVTEST_FOLDER)
endif
# The default, 20 seconds, is too short for packages that start one each while all others are compiled and run.
export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT := 4m

# So do those that need the CRDs of providers.
test test-integration test-race coverage deflake: $(CRDS)

# The integration tests import Cluster API's reconcilers. Other versions do not export them.
ifneq ($(and $(CAPI),$(filter test test-integration test-race test-nightly coverage deflake,$(MAKECMDGOALS))),)
$(error these tests run with the version of Cluster API in go.mod only, $(CLUSTER_API_VERSION); CAPI is for test-contract, test-e2e and local stacks)
endif

# Prometheus takes minutes to build, so the tests with it run each night.
MONITORING := ^(TestAlertsFire|TestMonitoring)$$

# Most of the time the integration tests wait, so they run in several processes, each with a control plane of its own.
# That is for ginkgo to do, which has other flags than go test: with TEST_FLAGS, or PROCS=1, go test runs them like all others.
INTEGRATION := ./test/integration
PROCS ?= 6

# Which packages are to be tested, and which of them ginkgo runs.
# make 4.3 gives these shells no exported variables.
list = $(shell GOTOOLCHAIN=$(GOTOOLCHAIN) go list $(TEST))
in_parallel = $(if $(TEST_FLAGS)$(filter 1,$(PROCS)),,$(filter %$(INTEGRATION:.%=%),$(list)))
others = $(filter-out $(in_parallel),$(if $(in_parallel),$(list),$(TEST)))
served = $(if $(TEST_FLAGS),,$(filter $(addprefix %/,$(filter-out hack/release,$(WITH_SERVER))),$(others)))

# Memory is cheaper than time here, for compilers and tests.
test test-unit test-integration test-race coverage: export GOGC := 200

# Runs the tests: $(1) are flags for go test, and $(2) the same for ginkgo. The others run beside the integration tests,
# which go first and whose output comes last. `make verify` vets all packages. -trimpath keeps the path of the folder out of
# packages, so that what one clone has compiled need not be compiled in the next. Without what only debuggers need, a quarter
# of the time to link goes. Tests that only compute and compile have a low priority (nice). With it, an API server on a busy
# machine would need more than the 34 seconds after which it gives up on a request.
go_test = go test -trimpath -ldflags="-s -w" -vet=off -timeout 90m -skip '$(MONITORING)' $(1) $(2) $(TEST_FLAGS) || code=$$?;
define run_tests
code=0; pid=; integration=$$(mktemp); trap '[[ -z $$pid ]] || kill "$$pid"' INT TERM; \
	$(if $(in_parallel),go tool ginkgo -procs=$(PROCS) --trimpath --ldflags="-s -w" --timeout=60m --no-color --succinct $(2) $(INTEGRATION) >"$$integration" 2>&1 & pid=$$!;) \
	$(if $(served),part=served; $(call go_test,$(1),$(served))) \
	$(if $(filter-out $(served),$(others)),part=others; nice $(call go_test,$(1),$(filter-out $(served),$(others)))) \
	$(if $(in_parallel),wait "$$pid" || code=$$?; cat "$$integration";) \
	rm -f "$$integration";
endef

# The part of what `make test` does in turn depends on the committed code, so that what passes today does not fail tomorrow,
# and a change of documents changes no result. With TEST_FLAGS, nothing is left out but in searches.
ROTATION ?= $(shell git rev-parse HEAD:api HEAD:internal HEAD:test HEAD:go.sum 2>/dev/null | cksum | cut -d ' ' -f 1)

# Packages with tests that need an API server or what is built for releases.
WITH_SERVER := api/v1alpha1 hack/release test/integration/fleet test/integration test/manifests/samples
of_module = $(shell GOTOOLCHAIN=$(GOTOOLCHAIN) go list ./...)

# After the lines of go test come those of the tests that search, which say how much they have searched (test/harness/counts). The name
# of their file is always the same, because go test takes no result from its cache if a variable that the test reads differs. In
# the temporary folder it is not compared. So a search that comes from the cache has no line.
.PHONY: test test-unit test-integration
test: ## Run the unit and integration tests (TEST=./internal/planner/... TEST_FLAGS='-run X').
test-unit: ## Run those that need no API server, and take what has not changed from Go's cache.
test-integration: ## Run those that need an API server.
test-unit: TEST = $(filter-out $(addprefix %/,$(WITH_SERVER)),$(of_module))
test-integration: TEST = $(filter $(addprefix %/,$(WITH_SERVER)),$(of_module))
test test-unit test-integration:
	@export COUNTS_FILE="$${TMPDIR:-/tmp}/counts-$$(pwd | cksum | cut -d ' ' -f 1)"; trap 'rm -f "$$COUNTS_FILE"' EXIT; rm -f "$$COUNTS_FILE"; \
	$(if $(TEST_FLAGS),,export ROTATION='$(ROTATION)';) \
	$(run_tests) [[ ! -e $$COUNTS_FILE ]] || sort "$$COUNTS_FILE"; echo "make $@: $$((SECONDS / 60))m$$((SECONDS % 60))s$(if $(TEST_FLAGS),, with ROTATION=$(ROTATION))"; exit $$code

.PHONY: test-nightly
test-nightly: ## Run them with all that `make test` does in turn, a part for each commit (test/harness/rotation).
	@$(MAKE) test ROTATION=all

.PHONY: test-race
test-race: ## Run them with the race detector, in random order.
	@$(call run_tests,-race -shuffle=on,--race --randomize-all) exit $$code

# go tool cover adds up what several profiles have of the same lines.
.PHONY: coverage
coverage: ## Print which part of internal/ the tests run.
	@mkdir -p out
	@$(call run_tests,-coverpkg=./internal/... -covermode=atomic -coverprofile=out/$$part.cover,--cover --coverpkg=./internal/... \
		--covermode=atomic --coverprofile=integration.cover --output-dir=out) \
	{ cat out/others.cover; tail -n +2 out/served.cover; tail -n +2 out/integration.cover; } >out/all.cover; \
	go tool cover -func=out/all.cover | tail -1; exit $$code

# The tests that deflake repeats: a pattern of names of specs or, with TEST for other packages, of tests.
FOCUS ?= .

.PHONY: deflake
deflake: ## Repeat tests until one of them fails (FOCUS='spare Machine', TEST=./internal/planner FOCUS=TestX).
ifeq ($(TEST),./...)
	@go tool ginkgo -procs=$(PROCS) --trimpath --no-color --succinct --until-it-fails --focus='$(FOCUS)' $(INTEGRATION)
else
	@while go test -count=1 -run '$(FOCUS)' $(TEST); do :; done; exit 1
endif

# How many end-to-end tests run at the same time. Each has its own stack, and mostly waits.
E2E_PARALLEL ?= 3

# What runs with other versions of Cluster API and Kubernetes: the path from Pods to Nodes and back in each placement and with the
# kubeadm bootstrap provider, deletion, drift, upgrades of control planes and, with the kubeadm control plane provider, of topologies,
# and clusterctl move. All but TestDrift and
# TestFirstNode run with MachineDeployments and MachinePools. With E2E_RUN or TEST_FLAGS, tests run with both kinds.
E2E_OF_VERSIONS := TestPlacements|TestKubeadm|TestClusterDeletion|TestTemplateDeletion|TestDrift|TestFirstNode|TestMove
E2E_RUN ?= $(if $(CAPI)$(KUBERNETES),^($(E2E_OF_VERSIONS))$$)

.PHONY: test-e2e
test-e2e: stack-binaries bin/clusterctl ## Run the tests on the local stack (E2E_PARALLEL=1 runs one after the other; CAPI=v1.13.6 KUBERNETES=v1.34.4).
	@code=0; $(if $(TEST_FLAGS)$(E2E_RUN),,export ROTATION='$(ROTATION)';) \
	go test -trimpath -vet=off -tags e2e -count=1 -p 1 -parallel $(E2E_PARALLEL) -timeout 60m -skip '$(MONITORING)' $(if $(E2E_RUN),-run '$(E2E_RUN)') $(TEST_FLAGS) ./test/e2e/... || code=$$?; \
	echo "make $@: $$((SECONDS / 60))m$$((SECONDS % 60))s$(if $(TEST_FLAGS)$(E2E_RUN),, with ROTATION=$(ROTATION))"; exit $$code

.PHONY: test-contract
test-contract: stack-binaries ## Check what the operator relies on in Cluster API, on the local stack (CAPI=v1.13.6 KUBERNETES=v1.34.4).
	@go test -trimpath -vet=off -tags contract -count=1 -timeout 60m $(TEST_FLAGS) ./test/contract

# Flags such as '-suites contract,e2e'.
MATRIX_FLAGS ?=

.PHONY: test-matrix
test-matrix: ## Run the tests of each combination of versions, or of one (CAPI=v1.13.6 KUBERNETES=v1.34.4), and write the results to docs/compatibility.md.
	@go run ./hack/matrix run -capi '$(MATRIX_CAPI)' -kubernetes '$(MATRIX_KUBERNETES)' $(MATRIX_FLAGS)

.PHONY: compatibility
compatibility: ## Write the results in hack/matrix/results to docs/compatibility.md.
	@go run ./hack/matrix page

.PHONY: test-monitoring
test-monitoring: stack-binaries bin/helm $(PROMETHEUS_TOOLS) ## Test when alerts fire, and let Prometheus scrape an operator on the local stack.
	@go test -trimpath -vet=off -count=1 -run '$(MONITORING)' $(TEST_FLAGS) ./test/manifests/charts
	@go test -trimpath -vet=off -tags e2e -count=1 -timeout 20m -run '$(MONITORING)' $(TEST_FLAGS) ./test/e2e

.PHONY: dashboards
dashboards: test-monitoring ## Draw what the Grafana dashboards show of TestMonitoring into docs.
	@install -m 0644 -t docs out/dashboard-fleet.svg out/dashboard-cluster.svg

.PHONY: test-provider
test-provider: stack-binaries $(PROVIDERS) ## Run the tests with Cluster API Provider vSphere and AWS, on local stacks with a simulated vCenter and a simulated AWS.
	@go test -trimpath -vet=off -tags provider -count=1 -timeout 60m $(TEST_FLAGS) ./test/provider/...

# How long each of the two fuzz tests runs. Without -fuzzminimizetime, they would mostly make inputs smaller.
FUZZ_TIME ?= 30s

.PHONY: fuzz
fuzz: ## Render random Go templates of patches, which must not take long or much memory (FUZZ_TIME=30s).
	@for test in FuzzTemplate FuzzProgram; do \
		go test -trimpath -vet=off -run '^$$' -fuzz "^$$test$$" -fuzztime '$(FUZZ_TIME)' -fuzzminimizetime 10x ./internal/patch || exit 1; \
	done

# What chaos and quiet are to be run with, as -seed 1 -pods 60; bin/trials chaos -h tells.
CHAOS_FLAGS ?=

.PHONY: chaos
chaos: stack-binaries bin/trials ## Kill the operator and others while Nodes come and go (KIND=MachinePool; CHAOS_KEEP=1 leaves the stack up).
	@bin/trials chaos -kind '$(KIND)' $(CHAOS_FLAGS)

# How long each fault of partition lasts, which faults, and more flags, such as -seed 1; bin/trials partition -h lists them.
PARTITION_SECONDS ?= 180
PARTITION_FAULTS ?= cut,delay,drop,refuse
PARTITION_FLAGS ?=

.PHONY: partition
partition: stack-binaries bin/trials ## Disturb the network to each of two clusters (KIND=MachinePool PARTITION_SECONDS=180 PARTITION_FAULTS=cut,delay,drop,refuse).
	@bin/trials partition -kind '$(KIND)' -seconds '$(PARTITION_SECONDS)' -faults '$(PARTITION_FAULTS)' $(PARTITION_FLAGS)

.PHONY: quiet
quiet: stack-binaries bin/trials ## Check that the operator writes nothing when there is nothing to do (KIND=MachinePool).
	@bin/trials quiet -kind '$(KIND)' $(CHAOS_FLAGS)

# Parts of the suites (CONFORMANCE_FLAGS='-only drift'); CONFORMANCE=full also runs the specs that take long.
CONFORMANCE_FLAGS ?=

.PHONY: conformance
conformance: stack-binaries $(KARPENTER_SUITES) bin/trials ## Run Karpenter's own test suites against the operator (CONFORMANCE=full CONFORMANCE_FLAGS='-only drift').
	@bin/trials conformance $(CONFORMANCE_FLAGS)

# What bench measures: numbers of Pods that are created at once, (60@2s) one after the other or (5000+60) beside Nodes that exist, numbers
# of offerings that they are spread over, how often, and more flags, such as -only operator; bin/trials bench -h lists them.
BENCH_N ?= 60@2s 1 10 200
BENCH_OFFERINGS ?= 1
BENCH_RUNS ?= 3
BENCH_FLAGS ?=

.PHONY: bench
bench: stack-binaries bin/karpenter-kwok bin/trials ## Measure the operator and write docs/benchmarks.md (BENCH_N="60@2s 1 10 200" BENCH_RUNS=3 BENCH_OFFERINGS=1 BENCH_PROFILE=1).
	@bin/trials bench -n '$(BENCH_N)' -offerings '$(BENCH_OFFERINGS)' -runs '$(BENCH_RUNS)' -results docs/design/benchmarks.json -documents docs/benchmarks.md,docs/design/benchmarks.md $(BENCH_FLAGS)

.PHONY: bench-smoke
bench-smoke: stack-binaries bin/karpenter-kwok bin/trials ## Check that small runs of the operator exceed no bound, such as of requests per claim and of CPU beside Karpenter with kwok.
	@bin/trials bench-smoke

##@ Build

.PHONY: build
build: bin/karpenter-capi bin/kubectl-karpenter_capi ## Build the operator and the kubectl plugin into bin/.

# Of one commit, the image is the same each time: its time is the commit's, and the binary has no path and no time in it.
.PHONY: docker-build
docker-build: ## Build the operator's image (IMG=name:tag PLATFORMS=linux/amd64,linux/arm64 DOCKER_FLAGS=--push).
	docker buildx build --platform=$(PLATFORMS) --build-arg LDFLAGS='$(LDFLAGS)' --build-arg VERSION='$(VERSION)' \
		--build-arg SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) --tag $(IMG) $(DOCKER_FLAGS) .

# The same image as an OCI archive, without a daemon and without a base image (hack/image). Its time is the commit's.
IMAGE_PLATFORMS ?= linux/amd64 linux/arm64

.PHONY: image
image: ## Write the operator's image into bin/image.tar, an OCI archive (IMAGE_PLATFORMS="linux/amd64 linux/arm64").
	@rm -rf bin/image
	@for platform in $(IMAGE_PLATFORMS); do \
		folder=bin/image/$${platform/\//-}; echo "==> building for $$platform"; \
		for program in karpenter-capi=./cmd kubectl-karpenter_capi=./cmd/kubectl-karpenter_capi; do \
			CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} \
				go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o "$$folder/$${program%%=*}" "$${program#*=}"; \
		done; \
	done
	@go run ./hack/image bin/image.tar '$(VERSION)' "$$(git log -1 --format=%ct)" bin/image
	@sha256sum bin/image.tar

# The second time, all binaries are compiled into an empty cache, so this takes as long as the first build.
.PHONY: verify-image
verify-image: image ## Build the image twice, from nothing the second time, and compare the bytes.
	@mv bin/image.tar bin/image-first.tar
	@cache=$$(mktemp -d); trap 'rm -rf "$$cache" bin/image-first.tar' EXIT; \
		GOCACHE="$$cache" $(MAKE) image && cmp bin/image-first.tar bin/image.tar

.PHONY: compare-image
compare-image: image ## Build the image with Docker, too, and compare the files and settings of both.
	@$(MAKE) docker-build PLATFORMS=$$(sed 's/ /,/g' <<<'$(IMAGE_PLATFORMS)') DOCKER_FLAGS='--provenance=false --output=type=oci,dest=bin/docker.tar'
	@go run ./hack/image same bin/image.tar bin/docker.tar

.PHONY: test-image
test-image: image ## Run the operator from the image's archive: as uid 65532, on a read-only root.
	@go test -trimpath -vet=off -tags install -count=1 -timeout 10m $(TEST_FLAGS) ./hack/image

.PHONY: tools
tools: $(TOOLS) $(CRDS) ## Build all tools of hack/tools into bin/, and put the CRDs of providers there.

##@ Local stack

# Flags of stack-up, such as --separate; bin/trials stack-up -h lists them.
STACK_FLAGS ?=

.PHONY: stack-up
stack-up: stack-binaries bin/trials ## Start a local stack with the operator, or without it (STACK_FLAGS=--without-operator).
	@bin/trials stack-up $(STACK_FLAGS)

.PHONY: stack-down
stack-down: bin/trials ## Stop it.
	@bin/trials stack-down

.PHONY: stack-status
stack-status: bin/trials ## Describe what of it runs.
	@bin/trials stack-status

.PHONY: demo
demo: stack-binaries bin/trials bin/kubectl-karpenter_capi ## Show the whole path on a stack of its own (KIND=MachinePool; PLACEMENT=workload or management; DEMO_KEEP=1 leaves the stack up).
	@bin/trials demo -kind '$(KIND)' -placement '$(PLACEMENT)'

.PHONY: stack-binaries
stack-binaries: $(STACK_TOOLS) bin/karpenter-capi bin/simulated-infrastructure

# The programs of this repository. go build knows better than make what is out of date, so it is always asked.
.PHONY: bin/karpenter-capi bin/kubectl-karpenter_capi bin/simulated-infrastructure bin/trials
bin/karpenter-capi: PACKAGE := ./cmd
bin/kubectl-karpenter_capi: PACKAGE := ./cmd/kubectl-karpenter_capi
bin/simulated-infrastructure: PACKAGE := ./test/harness/infrastructure
bin/trials: PACKAGE := ./test/trials
bin/karpenter-capi bin/kubectl-karpenter_capi bin/simulated-infrastructure bin/trials:
	@echo "==> building $(@F)"
	@$(call quietly,go build -trimpath -ldflags '$(LDFLAGS)' -o $@ $(PACKAGE))
