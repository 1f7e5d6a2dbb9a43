# Everything one does here; every target sets up what it needs, and does nothing twice. `make` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

CARGO ?= cargo
# Other programs that the tests and the quick start talk to: real MCP servers, A2A SDKs, a stand-in for model providers.
export CAIPE_PEERS ?= $(CURDIR)/.cache/peers
# Tools built for this project alone; nothing is installed for the whole user.
TOOLS := $(or $(CAIPE_TOOLS),$(CURDIR)/.cache/tools)
CARGO_DENY_VERSION := 0.20.2
TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
PEERS_PATH := $(CAIPE_PEERS)/py/bin:$(CAIPE_PEERS)/npm/node_modules/.bin
LISTEN ?= 127.0.0.1:8000
DATA_DIR ?= .caipe
CRD := crds/caipe.io_caipesupervisors.yaml

.PHONY: help run test verify generate fmt lint doc bench deny peers

help: ## List what can be made.
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: peers ## Build the supervisor and serve the quick start on http://127.0.0.1:8000.
	$(CARGO) build --release --locked -p caipe-supervisor
	PATH="$(PEERS_PATH):$$PATH" scripts/run "$(TARGET)/release/caipe-supervisor" --listen "$(LISTEN)" --data-dir "$(DATA_DIR)"

test: peers ## Run every test; the ones against real peers too.
	CAIPE_REQUIRE_PEERS=1 $(CARGO) test --locked --workspace

verify: fmt-check lint generated doc deny ## Check everything but behaviour: format, lints, generated files, docs, licences.

generate: ## Write the generated files: the CustomResourceDefinition.
	$(CARGO) run --quiet --locked -p caipe-operator -- crd > $(CRD).new
	mv $(CRD).new $(CRD)

fmt: ## Format the code.
	$(CARGO) fmt --all

lint: ## Lint; a warning is an error.
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

doc: ## Build the API documentation; a broken link is an error.
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items

bench: ## Measure the supervisor beside a plain server that emits the same events.
	$(CARGO) build --release --locked -p caipe-supervisor -p caipe-fixtures --bins
	"$(TARGET)/release/caipe-bench"

deny: $(TOOLS)/bin/cargo-deny-$(CARGO_DENY_VERSION) ## Check licences, sources, banned and vulnerable dependencies.
	scripts/deny "$<"

peers: ## Install the peers of the tests and of the quick start (Python and npm packages).
	@scripts/peers

.PHONY: fmt-check generated

fmt-check:
	$(CARGO) fmt --all -- --check

# The file of the last commit is what counts: an uncommitted difference fails too, and says so.
generated: generate
	git diff --exit-code --stat -- $(CRD) || { echo "$(CRD) is out of date: commit what 'make generate' writes" >&2; exit 1; }

$(TOOLS)/bin/cargo-deny-$(CARGO_DENY_VERSION):
	$(CARGO) install --quiet --locked --root "$(TOOLS)" --target-dir "$(TOOLS)/target" cargo-deny --version $(CARGO_DENY_VERSION)
	rm -rf "$(TOOLS)/target"
	mv "$(TOOLS)/bin/cargo-deny" "$@"
