# Ramway's commands. `make help` lists them; each says what it is doing.
PREFIX ?= /usr/local
DESTDIR ?=
FILE ?=
FUZZ_SECONDS ?= 60
KILLS ?= 20000
TARGET := $(or $(CARGO_TARGET_DIR),target)
export MAKE SKIP_LINT

.DEFAULT_GOAL := help
.PHONY: help demo test check facts conformance lint doc bench bench-peers loom miri tsan fuzz kills build install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

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

conformance: need-cargo ## every vector through every language, and every language with every other (QUICK=1: shorter streams)
	@$(MAKE) --no-print-directory -C conformance $(if $(QUICK),quick,test)

lint: ## rustfmt and clippy, warnings are errors
	@sh scripts/lint.sh

doc: need-cargo ## the API's pages, and the book where mdbook is installed
	@echo '==> API documentation'
	@RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --all-features --no-deps
	@echo '    $(TARGET)/doc/ramway/index.html'
	@if command -v mdbook >/dev/null; then echo '==> book'; mdbook build docs --dest-dir "$(abspath $(TARGET))/book" && echo '    $(TARGET)/book/index.html'; \
	 else echo '==> book: skipped, mdbook is not installed (cargo install mdbook); the pages are plain Markdown in docs/'; fi

bench: build-bench ## every mechanism of this machine in one table (ARGS='--quick', ARGS='--html run.html', ...; `ramway bench --help`)
	@$(MAKE) --no-print-directory -C capi build
	@$(TARGET)/release/ramway bench $(ARGS)

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

bridge: need-cargo ## the program `ramway-bridge`, in release, in bridge/target (Zenoh's crates are built first: minutes)
	@$(MAKE) --no-print-directory -C bridge build
.PHONY: bridge

install: build ## command, C library and headers below PREFIX (DESTDIR is honoured)
	@echo '==> installing below $(DESTDIR)$(PREFIX)'
	@install -d '$(DESTDIR)$(PREFIX)/bin'
	@install -m 755 '$(TARGET)/release/ramway' '$(DESTDIR)$(PREFIX)/bin/ramway'
	@$(MAKE) --no-print-directory -C capi install PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)'

install-bench: build-bench ## `ramway-bench` below PREFIX (DESTDIR is honoured), for `ramway bench`
	@echo '==> installing ramway-bench below $(DESTDIR)$(PREFIX)'
	@install -d '$(DESTDIR)$(PREFIX)/bin'
	@install -m 755 '$(TARGET)/release/ramway-bench' '$(DESTDIR)$(PREFIX)/bin/ramway-bench'
.PHONY: install-bench

clean: ## what was built here
	@cargo clean --quiet
