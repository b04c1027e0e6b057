# Ramway's commands. `make help` lists them; each says what it is doing.
PREFIX ?= /usr/local
DESTDIR ?=
FILE ?=
FUZZ_SECONDS ?= 60
KILLS ?= 20000
OUT ?=
ONLY ?=
TARGET := $(or $(CARGO_TARGET_DIR),target)
BENCH_PAGE := $(or $(OUT),$(TARGET)/bench-page)
export MAKE SKIP_LINT QUICK PICTURES MACHINES TRY_ONLY

.DEFAULT_GOAL := help
.PHONY: help demo test check facts conformance lint doc bench bench-peers loom miri tsan fuzz kills build install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

need-cargo:
	@command -v cargo >/dev/null || { echo 'cargo is not on the PATH. Ramway is built with Rust 1.88 or later: https://rustup.rs'; exit 1; }
.PHONY: need-cargo

build: need-cargo ## the `ramway` command, in release
	@echo '==> building the ramway command (release)'
	@cargo build --release $(if $(shell test -t 2 || echo pipe),--quiet) -p ramway-cli

build-bench: build ## the `ramway-bench` program, which `ramway bench` and `ramway demo` run
	@echo '==> building ramway-bench (release)'
	@cargo build --release $(if $(shell test -t 2 || echo pipe),--quiet) -p ramway-bench
.PHONY: build-bench

demo: build-bench ## streams a real file between two processes, compares the hashes, measures (FILE=... for another file)
	@$(TARGET)/release/ramway demo $(if $(FILE),"$(FILE)")

test: ## installs what the tests need, runs all of them, counts them in the last line
	@sh scripts/test.sh

check: need-cargo ## before each commit, a few minutes: linters, the quick tests of core and pool, the vectors; says what it leaves out
	@sh scripts/check.sh

facts: need-cargo ## writes the constants of every language and the tables of docs/ABI.md anew from format/facts.toml
	@cargo run --quiet -p ramway-format

conformance: need-cargo ## every vector through every language, and every language with every other, in long streams (QUICK=1: short ones)
	@$(MAKE) --no-print-directory -C conformance $(if $(QUICK),quick,long)

lint: ## rustfmt and clippy, warnings are errors
	@sh scripts/lint.sh

doc: need-cargo ## the API's pages, warnings are errors (make site: the book, and the pages of all languages)
	@echo '==> API documentation'
	@RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --all-features --no-deps
	@echo '    $(TARGET)/doc/ramway/index.html'

bench: build-bench ## every mechanism of this machine in one table (ARGS='--quick', ARGS='--html run.html', ...; `ramway bench --help`)
	@$(MAKE) --no-print-directory -C capi build
	@$(TARGET)/release/ramway bench $(ARGS)

bench-page: ## the benchmark's page and its numbers, in the folder OUT (ARGS='--quick', ...)
	@mkdir -p '$(BENCH_PAGE)'
	@$(MAKE) --no-print-directory bench ARGS='--html $(BENCH_PAGE)/index.html --json $(BENCH_PAGE)/run.json $(ARGS)'
.PHONY: bench-page

bench-peers: need-cargo ## builds the other libraries that bench compares with, as far as they build
	@sh scripts/bench-peers.sh $(PEERS)

loom: ## the models of the ring, of the topic, of the sleep protocol and of a pool's caches
	@sh scripts/loom.sh

miri: need-cargo ## what miri can run of the core and of the pool (nightly; installs the component where rustup can)
	@sh scripts/miri.sh

tsan: need-cargo ## the ring and the topic between threads, and the pool, under the thread sanitizer (nightly)
	@sh scripts/tsan.sh

fuzz: need-cargo ## every fuzz target for FUZZ_SECONDS each (nightly with cargo-fuzz)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) sh scripts/fuzz.sh

kills: need-cargo ## a topic whose publisher and subscribers are killed at random, KILLS times each way
	@RAMWAY_TEST_KILLS=$(KILLS) cargo test --release --quiet -p ramway --test topic_kills -- --nocapture

test-oldest: need-cargo ## the tests with the oldest toolchain of each language that it says it supports (ONLY="rust go")
	@sh scripts/oldest.sh $(ONLY)

test-macos: need-cargo ## on macOS: compiles what exists there, and runs its tests
	@sh scripts/macos.sh
.PHONY: test-oldest test-macos

packages: need-cargo ## every archive (languages, C, command, Debian), installed into an empty place and tried (ONLY="crates go"; QUICK=1: this machine only)
	@sh scripts/packages.sh $(ONLY)

reproducible: need-cargo ## makes the archives twice, in two folders, and compares their bytes (ONLY="crates go"; FIRST=target/packages: once more)
	@sh scripts/reproducible.sh $(ONLY)

semver: need-cargo ## whether the version says what changed in the crates' API since the last release (cargo-semver-checks)
	@sh scripts/semver.sh $(SINCE)
.PHONY: reproducible semver

site: need-cargo ## the site: the book, the API references of the languages whose tools are here, the benchmark's page (bench-page)
	@sh scripts/site.sh

site-test: site ## the site in headless Chromium: phone and desk, light and dark, search (PICTURES=FOLDER keeps pictures)
	@$(MAKE) --no-print-directory -C bench/page-tests site
.PHONY: packages site site-test

version: ## writes the version V=X.Y.Z everywhere; without V prints it
	@sh scripts/version.sh $(if $(V),set '$(V)')
.PHONY: version

deny: need-cargo ## licences and sources of what is depended on, known vulnerabilities (cargo-deny, npm, pip-audit), licences of our files (reuse)
	@sh scripts/deny.sh
.PHONY: deny

dist: need-cargo ## the `ramway` command as one static, stripped program (TARGETS='x86_64-unknown-linux-musl ...')
	@sh scripts/dist.sh $(TARGETS)

test-container: ## two containers with nothing in them but the static command (make dist first, or PROGRAM=...)
	@sh cli/tests/container.sh '$(or $(PROGRAM),$(TARGET)/$(shell uname -m)-unknown-linux-musl/dist/ramway)'

orderings: ## the orderings on the hot paths, in arm64's machine code: C's inline headers, and the core
	@sh scripts/orderings.sh

test-musl: need-cargo ## Rust, C, C++ for musl, and containers with nothing but the static command (MACHINES=aarch64, SUITES="rust c", ARGS="--test ring")
	@sh scripts/cross.sh $(addsuffix -unknown-linux-musl,$(or $(MACHINES),$(shell uname -m)))

test-arm64: need-cargo ## Rust (also with larger pages), C, C++, Go for arm64, under qemu where this is another processor (SUITES="rust c", ARGS="--test ring"; SUITES=languages: Python, Java, C#)
	@sh scripts/cross.sh aarch64-unknown-linux-gnu
.PHONY: test-musl test-arm64
.PHONY: dist test-container orderings

bridge: need-cargo ## the program `ramway-bridge`, in release, in bridge/target (Zenoh's crates are built first: minutes)
	@$(MAKE) --no-print-directory -C bridge build
.PHONY: bridge

manual: build ## manual pages and completions of the command, in target/share (`make install` puts them below PREFIX)
	@sh scripts/share.sh '$(TARGET)/release/ramway' '$(TARGET)/share'
.PHONY: manual

install: build ## command with manual pages and completions, C library and headers below PREFIX (DESTDIR is honoured)
	@echo '==> installing below $(DESTDIR)$(PREFIX)'
	@install -d '$(DESTDIR)$(PREFIX)/bin'
	@install -m 755 '$(TARGET)/release/ramway' '$(DESTDIR)$(PREFIX)/bin/ramway'
	@sh scripts/share.sh '$(TARGET)/release/ramway' '$(DESTDIR)$(PREFIX)/share'
	@$(MAKE) --no-print-directory -C capi install PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)'

install-bench: build-bench ## `ramway-bench` below PREFIX (DESTDIR is honoured), for `ramway bench`
	@echo '==> installing ramway-bench below $(DESTDIR)$(PREFIX)'
	@install -d '$(DESTDIR)$(PREFIX)/bin'
	@install -m 755 '$(TARGET)/release/ramway-bench' '$(DESTDIR)$(PREFIX)/bin/ramway-bench'
.PHONY: install-bench

clean: ## what was built here
	@cargo clean --quiet
