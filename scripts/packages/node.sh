# The npm package, and those of the platforms with the native modules.
# shellcheck shell=sh disable=SC2154
pack_node() {
    "$MAKE_COMMAND" --no-print-directory -C bindings/node "$1" MACHINES="$machines" && rm -rf "$packages"/ramway-*.tgz "$packages/npm-others" &&
        cp bindings/node/dist-npm/*.tgz "$packages" || return 1
    # npm refuses a package of another platform, where it is told to install all that is in a folder.
    [ ! -d bindings/node/dist-npm/others ] || cp -R bindings/node/dist-npm/others "$packages/npm-others"
}
install_node() {
    rm -rf "$tmp/node" && mkdir -p "$tmp/node" &&
        (cd "$tmp/node" && npm init -y >/dev/null && npm install --offline --no-audit --no-fund "$packages"/ramway*.tgz) &&
        block docs/start/javascript.md js '// producer.mjs' >"$tmp/node/producer.mjs" &&
        block docs/start/javascript.md js '// consumer.mjs' >"$tmp/node/consumer.mjs"
}
try_node() { # PROGRAM [ARGUMENT]...
    both '1 7n* *any text' "timeout 60 $* $tmp/node/producer.mjs" "timeout 60 $* $tmp/node/consumer.mjs"
}
package_node() {
    if ! have npm; then absent "node" "npm is not on the PATH"; return; fi
    if [ -n "${QUICK:-}" ]; then how=pack; else how=dist; fi
    step "node: npm packages" pack_node $how && try "node: installed from the archives" install_node || return
    for runtime in node bun deno; do
        if [ -n "${PACK_ONLY:-}" ]; then continue; fi
        if ! program=$(node bindings/node/test/runtimes.mjs $runtime); then absent "$runtime" "it is not here"; continue; fi
        if [ $runtime = deno ]; then program="$program run --allow-ffi --allow-read --allow-env --no-prompt --no-lock --quiet"; fi
        # shellcheck disable=SC2086
        try "node: the first program in $runtime" try_node $program
    done
}
