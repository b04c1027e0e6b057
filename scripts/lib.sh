# Shared by the scripts beside it: output, logs, and installing what is missing. Sourced from the repository root.
# shellcheck shell=sh
# Whoever sources this uses what is set here.
# shellcheck disable=SC2034

target=${CARGO_TARGET_DIR:-target}
logs=$target/test-logs
MAKE_COMMAND=${MAKE:-make}
# In CI the committed lock file must be right; elsewhere cargo may bring it up to date.
locked=
if [ "${CI:-}" = true ]; then locked=--locked; fi
export CARGO_TERM_COLOR=never CARGO_TERM_PROGRESS_WHEN=never

have() { command -v "$1" >/dev/null 2>&1; }

if [ -t 1 ]; then green=$(printf '\033[32m') red=$(printf '\033[31m') yellow=$(printf '\033[33m') plain=$(printf '\033[0m')
else green= red= yellow= plain=; fi

started=0
say() { started=$(date +%s); printf '==> %s ...\n' "$1"; }
took() { printf '(%d s)' $(($(date +%s) - started)); }
# How long so many seconds are, as people say it.
minutes() { if [ "$1" -lt 90 ]; then printf '%d seconds' "$1"; else printf '%d minutes' $((($1 + 30) / 60)); fi; }
ok() { printf '    %sok%s %s %s\n' "$green" "$plain" "$1" "$(took)"; }
bad() { printf '    %sFAILED%s %s %s\n' "$red" "$plain" "$1" "$(took)"; }
note() { printf '    %s%s%s\n' "$yellow" "$1" "$plain"; }

# Runs a command with its output in $log and nothing on its standard input. Colours are taken out of the log afterwards: Maven
# 3.8 writes the end of one even when told to write none, and a summary behind it was not found.
escape=$(printf '\033')
log_of() { printf '%s/%s.log' "$logs" "$(printf '%s' "$1" | tr -c 'A-Za-z0-9\n' '-')"; } # NAME
run_logged() { # NAME COMMAND...
    mkdir -p "$logs"
    log=$(log_of "$1")
    shift
    printf '$ %s\n' "$*" >"$log"
    "$@" </dev/null >"$log.raw" 2>&1
    set -- $?
    sed "s/$escape\[[0-9;]*m//g" "$log.raw" >>"$log"
    rm -f "$log.raw"
    return "$1"
}

# What a failed suite printed, without the lines about tests that passed and packages that compiled.
show_log() {
    grep -vE '^test .* \.\.\. ok$|^running [0-9]+ test|^test result: ok|^$|^ +(Compiling|Checking|Downloading|Downloaded|Blocking) ' "$log" | tail -n 300 | sed 's/^/    | /'
    printf '    | (all of it: %s)\n' "$log"
}

# "PASSED FAILED SKIPPED" of the last line "N passed, N failed" (", N skipped" may follow) of the log.
counted() {
    sed -n 's/^\([a-z+]*: \)\{0,1\}\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed\(, \([0-9][0-9]*\) skipped\)\{0,1\} *$/\2 \3 \5/p' "$log" | tail -n 1 |
        awk '{ p = $1; f = $2; s = $3 } END { print p + 0, f + 0, s + 0 }'
}

# Stops a suite that hangs, where the system has `timeout`.
limited() {
    if have timeout; then timeout -k 20 "${TEST_TIMEOUT:-3000}" "$@"; else "$@"; fi
}

need_cargo() {
    if have cargo; then return 0; fi
    # shellcheck disable=SC2016
    printf '%s\n' 'cargo is not on the PATH. Ramway is built with Rust 1.88 or later: https://rustup.rs' >&2
    return 1
}

# The newest JDK of version 22 or later that this system has a package of, and Go and Maven where they will do: what has no
# package, or one that is too old, is left to the user who wants that language. Needs up-to-date lists of packages.
language_packages() {
    if ! sh scripts/jdk.sh >/dev/null 2>&1; then
        newest=$(apt-cache search --names-only '^openjdk-[0-9]+-jdk-headless$' 2>/dev/null |
            sed -n 's/^openjdk-\([0-9]*\)-.*/\1/p' | sort -n | tail -n 1)
        if [ "${newest:-0}" -ge 22 ]; then printf ' openjdk-%s-jdk-headless' "$newest"; fi
    fi
    if ! have go; then
        version=$(apt-cache policy golang-go 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}\([0-9]*\.[0-9]*\).*/\2/p')
        case $version in 1.2[3-9] | 1.[3-9][0-9]) printf ' golang-go' ;; esac
    fi
}

# Installs the Debian packages of the commands that the tests (or a script that sets $needed) need and that are not there. Sets
# $installed and $still_missing; needs root or a sudo that asks nothing.
install_missing() {
    installed="all there" still_missing= wanted=
    for pair in ${needed:-cc:gcc c++:g++ cmake:cmake pkg-config:pkg-config node:nodejs npm:npm mvn:maven chromium:chromium shellcheck:shellcheck}; do
        have "${pair%%:*}" || wanted="$wanted ${pair#*:}"
    done
    asks=
    if [ -z "${needed:-}" ]; then
        # Any CPython from 3.11 on that can make a whole virtual environment will do.
        if ! sh bindings/python/pythons.sh --with-pip >/dev/null 2>&1; then wanted="$wanted python3 python3-venv"; fi
        # What C# is tested with is fetched by it where there is no .NET SDK.
        if ! have dotnet && ! have pip && ! python3 -m pip --version >/dev/null 2>&1; then wanted="$wanted python3-pip"; fi
        if ! sh scripts/jdk.sh >/dev/null 2>&1 || ! have go; then asks=yes; fi
    fi
    [ -n "$wanted$asks" ] || return 0
    still_missing=$wanted
    have apt-get || return 1
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        if have sudo && sudo -n true 2>/dev/null; then as_root="sudo -n"; else return 1; fi
    fi
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    run_logged "apt-update" $as_root apt-get update -q || true
    if [ -n "$asks" ]; then wanted="$wanted$(language_packages)"; fi
    still_missing=$wanted
    [ -n "$wanted" ] || return 0
    # shellcheck disable=SC2086
    if ! run_logged "apt-install" $as_root apt-get install -q -y --no-install-recommends $wanted; then
        # One package that this system does not have must not keep the others away.
        still_missing=
        for package in $wanted; do
            # shellcheck disable=SC2086
            run_logged "apt-install-$package" $as_root apt-get install -q -y --no-install-recommends "$package" ||
                still_missing="$still_missing $package"
        done
        [ -z "$still_missing" ] || return 1
    fi
    installed="installed$wanted" still_missing=
}
