# SPDX-License-Identifier: Apache-2.0

# The read-only checks of `make verify`.

# Paths, for git, of what `make generate manifests` writes.
GENERATED := ':(glob)**/zz_generated.*' config/crd/bases config/rbac/role.yaml test/harness/infrastructure/config/crd docs/reference
NOT_GENERATED := ':(exclude,glob)**/zz_generated.*' ':!config/crd/bases' ':!config/rbac/role.yaml' ':!test/harness/infrastructure/config/crd' ':!docs/reference'

.PHONY: verify-format
verify-format: bin/golangci-lint
	@echo "==> format"
	@bin/golangci-lint fmt --diff || { echo "The code is not formatted: run 'make fmt'." >&2; exit 1; }

.PHONY: verify-tidy
verify-tidy:
	@echo "==> go.mod and go.sum"
	@for module in . $(patsubst %/go.mod,%,$(wildcard hack/tools/*/go.mod)); do \
		(cd $$module && go mod tidy -diff) || { echo "The module in $$module is not tidy: run 'go mod tidy' there." >&2; exit 1; }; \
	done

# Go files that golangci-lint, which checks the others, does not see: those of other modules and of other operating systems.
UNLINTED := 'hack/tools/*.go' test/integration/parent_test.go

.PHONY: verify-headers
verify-headers:
	@echo "==> licence headers"
	@missing=$$(git ls-files -- $(UNLINTED) '*.sh' '*.yaml' '*.yml' '*.mk' Makefile Dockerfile .ci .github/CODEOWNERS $(NOT_GENERATED) | \
		xargs grep -L 'SPDX-License-Identifier: Apache-2.0' || true); \
	if [[ -n "$$missing" ]]; then \
		printf '%s\n' "$$missing" "These files need a line 'SPDX-License-Identifier: Apache-2.0', in a comment, at their top." >&2; exit 1; \
	fi

# shellcheck and pyflakes are no Go modules. Without these flags, actionlint would run those that happen to be installed.
.PHONY: verify-workflows
verify-workflows: bin/actionlint
	@echo "==> workflows"
	@bin/actionlint -shellcheck= -pyflakes=

.PHONY: verify-scripts
verify-scripts: bin/shfmt
	@echo "==> shell scripts"
	@bin/shfmt -d $(SCRIPTS) || { echo "These scripts are not formatted, or have wrong syntax: run 'make fmt'." >&2; exit 1; }

.PHONY: verify-leftovers
verify-leftovers:
	@echo "==> leftovers"
	@if git grep -nwE 'TO[D]O|FIX[M]E|X[X]X' -- $(NOT_GENERATED) ':!LICENSE' ':!*go.sum'; then \
		echo "Finish these, or open an issue for them." >&2; exit 1; \
	fi

# LANGUAGE_FLAGS=-summary counts the findings of each top-level folder.
.PHONY: verify-language
verify-language:
	@echo "==> language"
	@go run ./hack/language $(LANGUAGE_FLAGS) $(NOT_GENERATED)

.PHONY: verify-generated
verify-generated:
	@echo "==> generated files"
	@untracked=$$(git ls-files --others --exclude-standard -- $(GENERATED)); \
	if ! git diff --exit-code -- $(GENERATED) || [[ -n "$$untracked" ]]; then \
		printf '%s\n' $$untracked "Generated files are not up to date: run 'make generate manifests' and commit what it writes." >&2; exit 1; \
	fi
