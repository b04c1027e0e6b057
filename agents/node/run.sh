# run.sh ADDRESS_NODE: the agent in Node.js, or in RAMWAY_CONFORMANCE_RUNTIME (bun, deno).
# The interpreter takes this shell's place: the runner kills, and asks about, the process that it started.
here=${0%/*}
RAMWAY_ADDRESS=$1
export RAMWAY_ADDRESS
shift

# One from the PATH, else the one that the binding's tests installed; the npm packages' own launchers start a child.
runtime() { # NAME PATTERN
    command -v "$1" && return
    for found in "$here"/node_modules/ramway/node_modules/$2; do
        [ -x "$found" ] && printf '%s\n' "$found" && return
    done
    echo "$1 is neither on the PATH nor installed in bindings/node" >&2
    exit 2
}

case ${RAMWAY_CONFORMANCE_RUNTIME:-node} in
node) exec node "$here/main.js" "$@" ;;
bun) bun=$(runtime bun '@oven/bun-*/bin/bun') && exec "$bun" "$here/main.js" "$@" ;;
deno) deno=$(runtime deno '@deno/*/deno') && exec "$deno" run -A --no-lock --quiet "$here/main.js" "$@" ;;
*) echo "RAMWAY_CONFORMANCE_RUNTIME is node, bun or deno" >&2 && exit 2 ;;
esac
