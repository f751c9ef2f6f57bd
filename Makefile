# `make` prints the targets. CI runs `make check`, `make test` and `make test-long`, nothing more and nothing less.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Cargo and npm use every core themselves; two of them at once only fight.
.NOTPARALLEL:

FUZZ_SECONDS ?= 20
# Suites to run, by name; by default all of `make test`, `make test-long` or `make test-night`.
SUITES ?=
# For example: make compare COMPARE_OPTIONS="--repeats 5"
COMPARE_OPTIONS ?=
# The pushlab-bench of another build, for `make bench` to compare with.
AGAINST ?=
CONSOLE := web/console
CLIENT := web/client
BUNDLE := $(CONSOLE)/dist/report.html $(CONSOLE)/dist/console/index.html $(CONSOLE)/dist/console/console.js $(CONSOLE)/dist/console/console.css
PACKAGES := $(CONSOLE)/node_modules/.package-lock.json
CONSOLE_SOURCES := $(shell find $(CONSOLE) $(CLIENT)/src \( -name node_modules -o -name dist \) -prune -o -type f -print)
CLIENT_PACKAGES := $(CLIENT)/node_modules/.package-lock.json
TEST_PACKAGES := $(addsuffix /node_modules/.package-lock.json,tests/browser tests/by-transport tests/foreign)
# Not by `cargo run`, which sets variables that make a build inside it start from scratch.
SUITES_PROGRAM := $(or $(CARGO_TARGET_DIR),target)/debug/pushlab-suites
PUSHLAB := $(or $(CARGO_TARGET_DIR),target)/release/pushlab

.PHONY: help build compare test test-long test-night packages subjects bench check fuzz generate clean need-cargo need-node

help: ## Print this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r name what; do printf '  make %-10s %s\n' "$$name" "$$what"; done

build: need-cargo $(BUNDLE) ## Build the console and the release binary
	@[ -x $(PUSHLAB) ] || echo 'Building pushlab: the first time takes about three minutes on two cores.'
	@cargo build --quiet --release --locked -p pushlab-cli

compare: build ## Build, then compare every transport on this machine
	@$(PUSHLAB) run transports $(COMPARE_OPTIONS)

test: need-cargo need-node ## Run the everyday tests, at most 10 minutes; SUITES="browser" runs one suite
	@cargo build --quiet --locked -p pushlab-suites
	@$(SUITES_PROGRAM) $(SUITES)

test-long: need-cargo need-node ## Run the long tests: Firefox, kills, fleets, databases, h2spec, the README
	@cargo build --quiet --locked -p pushlab-suites
	@$(SUITES_PROGRAM) --long $(SUITES)

test-night: need-cargo need-node ## Run the tests of a night, at least once a month; tests/nights.toml says when each passed
	@cargo build --quiet --locked -p pushlab-suites
	@$(SUITES_PROGRAM) --night $(SUITES)

packages: $(PACKAGES) $(CLIENT_PACKAGES) $(TEST_PACKAGES) ## Install the npm packages that pages and tests need

subjects: build ## Install every foreign server that this machine can run, and check them all
	$(PUSHLAB) subjects install --all
	$(PUSHLAB) subjects check --all

bench: need-cargo $(BUNDLE) ## Print the performance ratios, measured in one run; AGAINST=PATH compares with another build
	cargo run --release --locked -p pushlab-bench -- $(if $(AGAINST),--against '$(AGAINST)')

check: need-cargo $(BUNDLE) $(CLIENT_PACKAGES) ## Format, lint with warnings denied, house rules, nights, dependencies
	cargo fmt --all --check
	rustfmt --check --edition 2024 fuzz/fuzz_targets/*.rs
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo run --quiet --locked -p pushlab-tidy -- check
	cargo run --quiet --locked -p pushlab-suites -- --nights
	cd $(CONSOLE) && npm run check
	cd $(CLIENT) && npm run check
	tests/supply-chain/run

fuzz: need-cargo ## Fuzz each decoder for FUZZ_SECONDS (20)
	FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz/run

generate: need-cargo need-node $(BUNDLE) ## Write what is generated: codes, schemas, types of the console
	cargo run --quiet --locked -p pushlab-tidy -- generate
	UPDATE_SCHEMA=1 cargo test --quiet --locked -p pushlab-lab --test generated
	UPDATE_SCHEMA=1 cargo test --quiet --locked -p pushlab-console --test it schema
	cd $(CONSOLE) && npm run generate

clean: ## Remove everything that a build made
	rm -rf target fuzz/target $(CONSOLE)/dist $(CONSOLE)/node_modules $(CLIENT)/dist $(CLIENT)/node_modules

# npm keeps the time of a file it did not change, hence the touches. One build writes the whole bundle: the touch of all
# of it keeps it from running again for the next file.
$(BUNDLE): $(CONSOLE_SOURCES) $(PACKAGES) | need-node
	@cd $(CONSOLE) && npm run --silent build
	@touch $(BUNDLE)

$(PACKAGES) $(CLIENT_PACKAGES) $(TEST_PACKAGES): %/node_modules/.package-lock.json: %/package.json %/package-lock.json | need-node
	@cd $* && npm ci --silent --no-audit --no-fund
	@touch $@

need-cargo:
	@command -v cargo >/dev/null || { echo 'cargo is missing: install Rust with rustup, https://rustup.rs' >&2; exit 1; }
	@command -v cc >/dev/null || { echo 'a C compiler is missing, Rust links with it: install gcc or clang' >&2; exit 1; }

need-node:
	@command -v node >/dev/null || { echo 'node is missing: install Node.js 20.19 or newer, https://nodejs.org' >&2; exit 1; }
	@command -v npm >/dev/null || { echo 'npm is missing: it comes with Node.js, or install the package npm' >&2; exit 1; }
	@node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' \
	  || { echo "node $$(node --version) is too old: install Node.js 20.19 or newer, https://nodejs.org" >&2; exit 1; }
