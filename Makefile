# The development tasks. Every target installs its requirements and skips completed work. `make` lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

CARGO ?= cargo
# The peers of the tests and of the quick start: real MCP servers, A2A SDKs, a stand-in for model providers.
export CAIPE_PEERS ?= $(CURDIR)/.cache/peers
# A real Kubernetes control plane for the tests.
export CAIPE_CONTROL_PLANE ?= $(CURDIR)/.cache/control-plane
# The state of the Kubernetes node of `make cluster`.
export CAIPE_CLUSTER ?= $(CURDIR)/.cache/cluster
# Container images for a live cluster.
export CAIPE_IMAGES ?= $(CURDIR)/.cache/images
# Tools for this project only; no target installs tools for the user or the system.
export CAIPE_TOOLS := $(or $(CAIPE_TOOLS),$(CURDIR)/.cache/tools)
TOOLS := $(CAIPE_TOOLS)
CARGO_CYCLONEDX_VERSION := 0.5.9
CARGO_DENY_VERSION := 0.20.2
CARGO_FUZZ_VERSION := 0.13.2
CARGO_MUTANTS_VERSION := 27.1.0
MDBOOK_VERSION := 0.5.4
# Seconds for each target of `make fuzz`.
FUZZ_SECONDS ?= 20
# The sample of `make mutants`: one mutant of every fifteen.
MUTANTS_SHARD ?= 0/15
# Seconds for each test of `make chaos`.
CHAOS_SECONDS ?= 300
TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
PEERS_PATH := $(CAIPE_PEERS)/py/bin:$(CAIPE_PEERS)/npm/node_modules/.bin
LISTEN ?= 127.0.0.1:8000
DATA_DIR ?= .caipe
IMAGE ?= $(TARGET)/caipe-operator.tar
CRD := crds/caipe.io_caipesupervisors.yaml
GENERATED := $(CRD) crds/golden charts deploy docs/reference.md

# Reports everything that the requested targets need and this machine lacks, before the first of them begins.
ifneq ($(shell scripts/needs $(MAKECMDGOALS) >&2 || echo missing),)
$(error see the list above)
endif

.PHONY: help run test test-cluster campaign verify generate fmt lint doc bench chaos fuzz mutants deny peers control-plane argocd cluster cluster-check cluster-down demo e2e image image-test images chart-lint

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-15s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: peers ## Build the supervisor and serve the quick start on http://127.0.0.1:8000.
	# Without MongoDB, whose driver is a quarter of the build.
	$(CARGO) build --profile first-run --locked -p caipe-supervisor --no-default-features
	PATH="$(PEERS_PATH):$$PATH" scripts/run "$(TARGET)/first-run/caipe-supervisor" --listen "$(LISTEN)" --data-dir "$(DATA_DIR)"

test: peers helm ## Run every test that needs no Kubernetes, also against real peers.
	CAIPE_REQUIRE=$${CAIPE_REQUIRE:-peers} $(CARGO) test --locked --workspace

test-cluster: peers control-plane ## Run the tests on a real Kubernetes control plane, without root.
	CAIPE_REQUIRE=$${CAIPE_REQUIRE:-peers,control-plane} $(CARGO) test --locked --workspace --test cluster --test apiserver

verify: fmt-check words cycles deny workflows lint generated compatible chart-lint doc fuzz-check ## Run all static checks: format, lints, generated files, charts, docs, licences.

generate: ## Write the generated files: addresses and version, the CustomResourceDefinition, the fields of the rendered spec, statuses for Argo CD, manifests and pages of the charts, the reference.
	scripts/addresses
	$(CARGO) run --quiet --locked -p caipe-operator -- crd > $(CRD).new
	mv $(CRD).new $(CRD)
	CAIPE_WRITE_FIELDS=1 $(CARGO) test --quiet --locked -p caipe-crds --features kubernetes --lib skew_tests >/dev/null
	CAIPE_WRITE_STATUSES=1 $(CARGO) test --quiet --locked --workspace --test phases >/dev/null
	scripts/charts generate

chart-lint: ## Check the charts with helm 3, helm 4 and the schemas of Kubernetes.
	scripts/charts lint

fmt: ## Format the code.
	$(CARGO) fmt --all

lint: ## Lint; a warning is an error.
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	# The test targets that `make test` leaves out.
	$(CARGO) clippy --locked --workspace --test '*' -- -D warnings
	$(CARGO) clippy --locked -p caipe-crds -- -D warnings
	! $(CARGO) tree --locked -p caipe-supervisor -e normal --prefix none | grep -E '^(kube|k8s-openapi) '

doc: ## Build the API documentation; a broken link is an error.
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items

# mdBook without its own web server.
mdbook_FLAGS := --no-default-features --features search
.PHONY: docs
docs: $(TOOLS)/bin/mdbook-$(MDBOOK_VERSION) ## Build the pages of docs/ for the web into target/docs; a broken link is an error.
	scripts/docs build "$<" "$(TARGET)/docs"

# Links between the Markdown files, also of those that the web pages do not contain.
.PHONY: links
verify: links
links:
	scripts/docs check

bench: peers ## Compare the supervisor of the image with a plain server (and one of the official Python SDK, if installed), measure its operator and its stores, and write docs/benchmarks.md and a table of docs/stores.md.
	$(CARGO) build --release --locked -p caipe-fixtures --bins
	$(CARGO) bench --locked -p caipe-store --bench commits
	$(CARGO) bench --locked -p caipe-store --features mongodb --bench costs -- --write "$(CURDIR)/docs/stores.md"
	image=$$(scripts/static release -p caipe-supervisor -p caipe-operator --features caipe-supervisor/mimalloc) && \
	  "$(TARGET)/release/caipe-bench" --supervisor "$$image/caipe-supervisor" --operator "$$image/caipe-operator" --write docs/benchmarks.md

chaos: ## Simulate a hundred users while an agent is migrated, killed and disconnected, CHAOS_SECONDS for each test.
	CAIPE_CHAOS_SECONDS=$(CHAOS_SECONDS) $(CARGO) test --locked --workspace --test chaos -- --nocapture --test-threads=1

campaign: ## Run the long tests, for hours: more of each generated test, chaos, fuzzing, and every scenario with a killed operator.
	CAIPE_CAMPAIGN=long $(CARGO) test --locked --workspace --test campaign --test apiserver
	$(CARGO) test --locked -p caipe-supervisor --test runs -- --ignored --nocapture campaign
	$(CARGO) test --locked -p caipe-tests --test blackbox -- --ignored --nocapture --test-threads=1 replicas_campaign skills_campaign
	$(CARGO) test --locked -p caipe-tests --test slack -- --ignored --nocapture load_campaign
	$(MAKE) chaos fuzz FUZZ_SECONDS=300
	CAIPE_KILLS=50 CAIPE_E2E_KILL=1 $(MAKE) e2e
	scripts/e2e --ignored
	$(MAKE) mutants

fuzz: $(TOOLS)/bin/cargo-fuzz-$(CARGO_FUZZ_VERSION) ## Feed the parsers of A2A with generated bytes, FUZZ_SECONDS for each target.
	scripts/fuzz "$<" "$(FUZZ_SECONDS)"

mutants: $(TOOLS)/bin/cargo-mutants-$(CARGO_MUTANTS_VERSION) ## Change a sample of the product's expressions, one at a time, and count the changes that a test notices.
	scripts/mutants "$<" "$(MUTANTS_SHARD)"

deny: $(TOOLS)/bin/cargo-deny-$(CARGO_DENY_VERSION) ## Check licences, sources, banned and vulnerable dependencies.
	scripts/deny "$<"

image: $(TOOLS)/bin/cargo-cyclonedx-$(CARGO_CYCLONEDX_VERSION) ## Build the container image as an archive at IMAGE, with a list of its contents; needs no container engine.
	scripts/image "$(IMAGE)"
	scripts/sbom "$<" "$(IMAGE)"

# Not part of `make test`, because it builds everything once more, for musl.
image-test: image ## Build the image twice and compare, then run its programs with the image's files only.
	scripts/image "$(IMAGE).again"
	cmp "$(IMAGE)" "$(IMAGE).again" && rm "$(IMAGE).again"
	CAIPE_IMAGE="$(abspath $(IMAGE))" $(CARGO) test --locked --workspace --test image

images: ## Build the container images for tests on a live cluster into CAIPE_IMAGES.
	scripts/images

peers: ## Install the peers of the tests and of the quick start (Python and npm packages).
	@scripts/peers

control-plane: ## Build etcd and Kubernetes for the tests, once (six minutes); install kubectl and helm.
	@CAIPE_TOOLS="$(TOOLS)" scripts/control-plane

argocd: ## Like control-plane, and build Argo CD (five minutes more) for its scenario and the health check.
	@CAIPE_TOOLS="$(TOOLS)" scripts/control-plane --argocd

cluster: ## Start a Kubernetes node on this machine, and build it the first time (ten minutes); requires root.
	@scripts/cluster up

cluster-down: ## Remove that node and everything on it.
	@scripts/cluster down

demo: ## Install the chart on that node, ask a question and migrate an agent; with KUBECONFIG, on your own cluster.
	@scripts/demo

e2e: ## Simulate twenty users on that node while agents migrate and components fail; with KUBECONFIG, on your own cluster.
	@scripts/e2e

cluster-check: ## Test the node itself, on a separate cluster: kill each component and restart it.
	@scripts/cluster-check

.PHONY: fmt-check generated compatible words cycles helm workflows fuzz-check

workflows: ## Check the workflow files with actionlint, which is built once with Go.
	@CAIPE_TOOLS="$(TOOLS)" scripts/workflows

# The fuzz targets compile, without the instrumentation of cargo-fuzz and with the dependencies of the workspace's folder.
fuzz-check:
	$(CARGO) check --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir "$(TARGET)"

helm:
	@CAIPE_TOOLS="$(TOOLS)" scripts/helm

words:
	scripts/words

cycles:
	scripts/cycles

fmt-check:
	$(CARGO) fmt --all -- --check

# Compares the generated files with the last commit, so it also fails for an uncommitted difference.
generated: generate
	git diff --exit-code --stat -- $(GENERATED) || { echo "generated files are out of date: commit what 'make generate' writes" >&2; exit 1; }

# The definition must accept every resource that each definition of the folder accepts. Each release adds its own.
compatible:
	for baseline in crds/baseline/*.yaml; do $(CARGO) run --quiet --locked -p caipe-operator -- crd --compatible-with "$$baseline"; done

# $(call tool,NAME,VERSION): a program from crates.io, built once.
define tool
$(TOOLS)/bin/$(1)-$(2):
	$(CARGO) install --quiet --locked --root "$(TOOLS)" --target-dir "$(TOOLS)/target-$(1)" $(1) --version $(2) $$($(1)_FLAGS)
	rm -rf "$(TOOLS)/target-$(1)"
	mv "$(TOOLS)/bin/$(1)" "$$@"
endef
$(eval $(call tool,cargo-cyclonedx,$(CARGO_CYCLONEDX_VERSION)))
$(eval $(call tool,cargo-deny,$(CARGO_DENY_VERSION)))
$(eval $(call tool,cargo-fuzz,$(CARGO_FUZZ_VERSION)))
$(eval $(call tool,cargo-mutants,$(CARGO_MUTANTS_VERSION)))
$(eval $(call tool,mdbook,$(MDBOOK_VERSION)))
