#!/bin/sh
# `make lint`: rustfmt, clippy with warnings as errors (missing_docs and undocumented_unsafe_blocks are among them,
# see Cargo.toml), the other architecture where its standard library is installed, the scripts and the pipelines. Prints what a tool
# finds.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1

failures=0
step() { # NAME COMMAND...
    name=$1
    shift
    say "$name"
    if run_logged "$name" "$@"; then ok ""; else failures=$((failures + 1)); bad ""; show_log; fi
}

step "rustfmt" cargo fmt --all --check
step "clippy" cargo clippy $locked --workspace --all-targets --all-features -- -D warnings
# Without the optional features the core must be free of warnings too, and the pool with each of its own alone.
step "clippy (core, no features)" cargo clippy $locked -p ramway --no-default-features -- -D warnings
step "clippy (pool, no features)" cargo clippy $locked -p ramway-pool --all-targets -- -D warnings
for feature in serde tokio uring; do
    step "clippy (pool, $feature)" cargo clippy $locked -p ramway-pool --features $feature -- -D warnings
done

# Workspaces of their own. Clippy needs their crates (Zenoh's, MCAP's), which nobody builds who does not work on them.
for apart in bridge examples/two-machines; do
    step "rustfmt ($apart)" cargo fmt --all --check --manifest-path $apart/Cargo.toml
    if [ "${CI:-}" = true ] || [ -d $apart/target ]; then
        step "clippy ($apart)" \
            cargo clippy $locked --manifest-path $apart/Cargo.toml --target-dir $apart/target --all-targets -- -D warnings
    else
        note "clippy is not run for $apart, which was not built here"
    fi
done

# The peers' workspace is built by nobody here, but its lock file must follow what the benchmark depends on. Nothing is
# downloaded but the registry's index, and where that cannot be had nothing is said.
say "lock file of bench/peers"
if run_logged "lock file of bench-peers" cargo update --workspace --locked --manifest-path bench/peers/Cargo.toml; then
    ok ""
elif grep -q 'because --locked was passed' "$log"; then
    failures=$((failures + 1))
    bad "is out of date: cargo update --workspace --manifest-path bench/peers/Cargo.toml"
else
    note "not checked: the registry cannot be reached"
fi

# Other systems, as far as compiling says anything. Their standard libraries are fetched where rustup can.
for other in aarch64-unknown-linux-gnu aarch64-apple-darwin; do
    case $other in *-darwin) [ -d core/src/sys/macos ] || continue ;; esac
    library=$(rustc --print target-libdir --target $other 2>/dev/null)
    if [ ! -d "$library" ] && have rustup; then run_logged "rustup $other" limited rustup target add $other || true; fi
    if [ -d "$library" ]; then
        step "clippy for $other" cargo clippy $locked -p ramway -p ramway-pool --all-features --target $other -- -D warnings
    else
        note "not checked for $other: its standard library cannot be had here (rustup target add $other)"
    fi
done
if have shellcheck; then
    # SC1007: several variables are emptied in one line. SC2048: the words of a list are meant to be split.
    step "shellcheck" shellcheck -x -S warning -e SC1007,SC2048 scripts/*.sh scripts/packages/*.sh
else
    # It looks at what only we run: not worth a failure.
    note "the scripts are not checked: there is no shellcheck here"
fi
# The pipelines. One file, which Go builds in a moment where nobody has installed it.
actionlint=github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
tools=$(mkdir -p "$target/tools" && cd "$target/tools" && pwd)
if ! have actionlint && [ ! -x "$tools/actionlint" ] && have go; then run_logged "actionlint" env GOBIN="$tools" GOFLAGS= go install "$actionlint"; fi
PATH=$PATH:$tools
if have actionlint; then
    step "actionlint" actionlint -shellcheck= .github/workflows/*.yml
else
    note "the pipelines are not checked: there is no actionlint here (go install $actionlint)"
fi
[ "$failures" -eq 0 ]
