#!/usr/bin/env bash
# All tests of the C library that are not Rust's. `make -C capi test` builds what it needs and calls it; the last line
# counts. Compilers that are not there are named and left out.
#
# For another target `make -C capi test-cross` sets RAMWAY_CC and RAMWAY_CXX, its compilers, RAMWAY_LINK, for musl, to the library that
# programs are linked with, static or shared, RAMWAY_LINK_MORE, a file that is linked with each program, and RAMWAY_TEST_RUNNER, words that
# stand before each program, such as an emulator's. The sanitizers and what installs the library are then left out.
set -u
cd "$(dirname "$0")" || exit 1
lib=${RAMWAY_LIB:?run it by make -C capi test}
target=$RAMWAY_TARGET
out=$target/capi-test
capi=$(cd .. && pwd)
passed=0
failed=0
skipped=0
mkdir -p "$out"
RAMWAY_DIR=$(mktemp -d /dev/shm/ramway-capi.XXXXXX) || exit 1
export RAMWAY_DIR
log=$out/log
trap 'rm -rf "$RAMWAY_DIR" "$out/prefix" "$out/dest" "$out/consumer-"*' EXIT

good() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAILED: $1"
    sed 's/^/    /' "$log" | head -40
}
# run SECONDS PROGRAM...: a program that was built here.
run() { timeout "$1" "${runner[@]}" "${@:2}"; }
# try NAME COMMAND...: one test. try_run NAME PROGRAM...: that a program that was built here ends well.
try() {
    local name=$1
    shift
    if timeout 300 "$@" >"$log" 2>&1; then good; else bad "$name (status $?)"; fi
}
# What a part of it says that it leaves out, in a line "skipped: WHAT: WHY", is shown and counted.
try_run() {
    try "$1" "${runner[@]}" "${@:2}"
    if grep '^skipped: ' "$log"; then skipped=$((skipped + 1)); fi
}

warn=(-Wall -Wextra -Werror -pedantic -Wconversion -Wshadow)
link=(-L"$lib" -lramway -lpthread "-Wl,-rpath,$lib")
read -ra runner <<<"${RAMWAY_TEST_RUNNER:-}"
cross=${RAMWAY_CC:-}
# What unwinds is a library of its own beside musl.
if [ "${RAMWAY_LINK:-}" = static ]; then link=("$lib/libramway.a" -lunwind); fi
if [ -n "${RAMWAY_LINK_MORE:-}" ]; then link+=("$RAMWAY_LINK_MORE"); fi
# Compiled and not linked: zig looks at no file without an output.
only=(-c -o "$out/only.o")
flags_c=(-std=c11 "${warn[@]}" -I../include)
flags_cpp=(-std=c++20 "${warn[@]}" -I../include)

c_compilers=(gcc)
cpp_compilers=(g++)
if [ -n "$cross" ]; then
    c_compilers=("$RAMWAY_CC")
    cpp_compilers=("$RAMWAY_CXX")
fi
for version in '' -21 -20 -19 -18 -17 -16 -15 -14; do
    if [ -z "$cross" ] && command -v "clang++$version" >/dev/null; then
        c_compilers+=("clang$version")
        cpp_compilers+=("clang++$version")
        break
    fi
done
[ ${#c_compilers[@]} -gt 1 ] || [ -n "$cross" ] || echo 'clang is not there: gcc only'

# ---- headers: each by itself, in both languages and all compilers ----
for cc in "${c_compilers[@]}"; do
    for header in ramway.h ramway_inline.h ramway/inline_topic.h; do
        echo "#include \"$header\"" >"$out/alone.c"
        for standard in c11 c17; do
            try "$header alone, $cc $standard" "$cc" -std=$standard "${warn[@]}" -I../include "${only[@]}" "$out/alone.c"
        done
    done
done
for cxx in "${cpp_compilers[@]}"; do
    for header in ramway.h ramway_inline.h ramway/inline_topic.h; do
        echo "#include \"$header\"" >"$out/alone.cpp"
        try "$header alone, $cxx c++17" "$cxx" -std=c++17 "${warn[@]}" -I../include "${only[@]}" "$out/alone.cpp"
    done
    for header in ramway.h ramway_inline.h ramway.hpp ramway/inline_topic.h ramway/{bus,inbox,options,outbox,peer,receiver,region,result,rpc,rpc_client,rpc_server,segments,select,sender,tensor,topic}.hpp; do
        echo "#include \"$header\"" >"$out/alone.cpp"
        # C++23 by the name that clang 14, too, knows it by.
        for standard in c++20 $([ $header = ramway.hpp ] && echo c++2b); do
            try "$header alone, $cxx $standard" "$cxx" -std=$standard "${warn[@]}" -I../include "${only[@]}" "$out/alone.cpp"
        done
    done
    for test in api rpc; do
        try "ramway.hpp without exceptions, $test, $cxx" "$cxx" "${flags_cpp[@]}" -fno-exceptions "${only[@]}" cpp/$test.cpp
    done
done

# ---- every exported function occurs in the test for null ----
missing() {
    local none=1
    for symbol in $(nm -D --defined-only "$lib/libramway.so" | awk '$2 == "T" && $3 ~ /^ramway_/ { print $3 }'); do
        case $symbol in ramway_strerror | ramway_status_name | ramway_version) continue ;; esac
        grep -qw "$symbol" c/null.c || { echo "$symbol is not in c/null.c"; none=0; }
        grep -qw "$symbol" ../include/ramway.h || { echo "$symbol is not in ramway.h"; none=0; }
    done
    [ $none = 1 ]
}
if [ "${RAMWAY_LINK:-}" != static ]; then
    missing >"$log" 2>&1 && good || bad 'every function is tested with null'
fi
foreign() { nm -D --defined-only "$lib/libramway.so" | awk '$2 ~ /[TDB]/ && $3 !~ /^ramway_/ { print; found = 1 } END { exit found }'; }
if [ "${RAMWAY_LINK:-}" != static ]; then
    foreign >"$log" 2>&1 && good || bad 'the library exports nothing but ramway_*'
fi

# ---- programs: every compiler, and with sanitizers by the last one that has them ----
san=(-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all)
echo 'int main(void) { return 0; }' >"$out/can.c"
san_c=
for i in "${!c_compilers[@]}"; do
    if [ -z "$cross" ] && "${c_compilers[i]}" "${san[@]}" "$out/can.c" -o "$out/can" 2>/dev/null && "$out/can"; then
        san_c=${c_compilers[i]}
        san_cpp=${cpp_compilers[i]}
    fi
done
[ -n "$san_c$cross" ] || echo 'no compiler has sanitizers here'
for test in null ring tensor twin wake region_bus peers topic twin_topic topic_peers select many rpc rpc_callbacks; do
    for cc in "${c_compilers[@]}"; do
        try "compile $test, $cc" "$cc" "${flags_c[@]}" -O2 c/$test.c -o "$out/$test" "${link[@]}"
        try_run "$test, $cc" "$out/$test"
    done
    [ -n "$san_c" ] || continue
    try "compile $test, $san_c, sanitized" "$san_c" "${flags_c[@]}" "${san[@]}" c/$test.c -o "$out/$test-san" "${link[@]}"
    try "$test, $san_c, sanitized" "$out/$test-san"
done
for test in api topic many rpc; do
    for cxx in "${cpp_compilers[@]}"; do
        try "compile $test.cpp, $cxx" "$cxx" "${flags_cpp[@]}" -O2 cpp/$test.cpp -o "$out/$test-cpp" "${link[@]}"
        try_run "$test.cpp, $cxx" "$out/$test-cpp"
    done
    [ -n "$san_c" ] || continue
    try "compile $test.cpp, $san_cpp, sanitized" "$san_cpp" "${flags_cpp[@]}" "${san[@]}" cpp/$test.cpp -o "$out/$test-cpp-san" "${link[@]}"
    try "$test.cpp, $san_cpp, sanitized" "$out/$test-cpp-san"
done
if [ -z "${RAMWAY_LINK:-}" ]; then
    try 'compile alloc' "${c_compilers[0]}" "${flags_c[@]}" -O2 c/alloc.c -o "$out/alloc" "${link[@]}"
    try_run 'a million messages without an allocation' "$out/alloc"
    grep -h 'messages each way' "$log"
else
    skipped=$((skipped + 1))
    echo 'skipped: a million messages without an allocation: it counts by functions of glibc that musl does not have (__libc_malloc)'
fi

# ---- C, C++ and Rust, each with each, in two processes ----
count=100000
try 'compile peer.c' "${c_compilers[0]}" "${flags_c[@]}" -O2 c/peer.c -o "$out/peer-c" "${link[@]}"
try 'compile peer.cpp' "${cpp_compilers[-1]}" "${flags_cpp[@]}" -O2 cpp/peer.cpp -o "$out/peer-cpp" "${link[@]}"
# peer KIND ROLE ...: each kind is a program and a path.
peer() {
    local kind=$1
    shift
    case $kind in
    c-call) exec "${runner[@]}" "$out/peer-c" "$@" call ;;
    c-inline) exec "${runner[@]}" "$out/peer-c" "$@" inline ;;
    cpp) exec "${runner[@]}" "$out/peer-cpp" "$@" inline ;;
    rust) exec "${runner[@]}" "$target/debug/examples/peer" "$@" call ;;
    esac
}
kinds=(c-call c-inline cpp rust)
for what in ring bus topic; do
    for from in "${kinds[@]}"; do
        for to in "${kinds[@]}"; do
            : >"$log"
            (peer "$from" send $what cross $count) >"$out/sent" 2>>"$log" &
            sender=$!
            (peer "$to" recv $what cross $count) >"$out/got" 2>>"$log" &
            receiver=$!
            wait $sender; a=$?
            wait $receiver; b=$?
            cat "$out/sent" "$out/got" >>"$log"
            if [ $a = 0 ] && [ $b = 0 ] && [ "$(cat "$out/sent")" = "0 $count" ] && [ "$(cat "$out/got")" = "0 $count" ]; then
                good
            else
                bad "$what: $from to $to (status $a, $b)"
            fi
        done
    done
done

# ---- SIGKILL of either, in the middle of the stream; on a ring also a successor ----
peer_dead=11
forever=1000000000000
# Until the sender is attached, or the receiver has got a thousand messages.
said() {
    for _ in $(seq 600); do
        grep -q "$1" "$log" && return
        sleep 0.1
    done
}
# What the shell has to say about processes that were killed is no news.
exec 3>&2 2>/dev/null
for what in ring bus topic; do
    for kind in "${kinds[@]}"; do
        # The sender dies: the receiver gets everything that it had committed, in order, and then PeerDead.
        : >"$log"
        (peer "$kind" send $what kill $forever) >/dev/null 2>>"$log" &
        sender=$!
        (peer "$kind" recv $what kill $forever) >"$out/got" 2>>"$log" &
        receiver=$!
        said running
        kill -KILL $sender
        wait $receiver; b=$?
        wait $sender 2>/dev/null
        cat "$out/got" >>"$log"
        read -r first next <"$out/got"
        if [ $b = $peer_dead ] && [ "${first:-x}" = 0 ] && [ "${next:-0}" -gt 0 ]; then good; else
            bad "$what, $kind: the sender is killed (status $b)"
        fi
        rm -rf "${RAMWAY_DIR:?}"/*

        # A publisher goes on without a subscriber that is dead: c/topic_peers.c.
        [ $what != topic ] || continue

        # The receiver dies: the sender gets PeerDead once the ring is full.
        : >"$log"
        (peer "$kind" send $what kill $forever) >"$out/sent" 2>>"$log" &
        sender=$!
        (peer "$kind" recv $what kill $forever) >/dev/null 2>>"$log" &
        receiver=$!
        said running
        kill -KILL $receiver
        wait $sender; a=$?
        wait $receiver 2>/dev/null
        cat "$out/sent" >>"$log"
        read -r _ sent <"$out/sent"
        if [ $a = $peer_dead ] && [ "${sent:-0}" -gt 0 ]; then good; else
            bad "$what, $kind: the receiver is killed (status $a)"
        fi
        [ $what = ring ] || continue

        # Successors of both go on: the sender after its last message, the receiver where nothing was released yet.
        : >"$log"
        count=$((sent + 10000))
        (peer "$kind" send ring kill $count) >"$out/sent" 2>>"$log" &
        sender=$!
        # Before that the receiver would be told, rightly, that the last sender is gone.
        said attached
        (peer "$kind" recv ring kill $count) >"$out/got" 2>>"$log" &
        receiver=$!
        wait $sender; a=$?
        wait $receiver; b=$?
        cat "$out/sent" "$out/got" >>"$log"
        read -r again to <"$out/sent"
        read -r first next <"$out/got"
        if [ $a = 0 ] && [ $b = 0 ] && [ "$to" = $count ] && [ "$next" = $count ] && [ "$first" -le "$again" ] && [ "$again" -le "$sent" ]; then
            good
        else
            bad "ring, $kind: successors (status $a, $b; sent $sent before)"
        fi
        rm -rf "${RAMWAY_DIR:?}"/*
    done
done

exec 2>&3

# ---- the README's programs ----
# block LANGUAGE N: the N-th program of that language.
block() { awk -v fence="\`\`\`$1" -v want="$2" '$0 == fence { on = ++n == want; next } /^```/ { on = 0 } on' ../README.md; }
block c 1 >"$out/readme.c"
block c 2 >"$out/readme-topic.c"
block c 3 >"$out/readme-inbox.c"
block c 4 >"$out/readme-rpc.c"
block cpp 4 >"$out/readme-rpc.cpp"
block cpp 1 >"$out/readme.cpp"
block cpp 3 >"$out/readme-select.cpp"
block cpp 2 >"$out/readme-topic.cpp"
# The guide's are parts of programs: they compile with what they call.
{
    printf '#include <ramway.hpp>\nvoid steer(const ramway::topic_message &);\nvoid obey(const ramway::message &);\n'
    printf 'void add(std::uint64_t, double);\nvoid warn(std::uint32_t);\nvoid report(const std::vector<std::byte> &);\n'
    awk '$0 == "```cpp" { on = 1; next } /^```/ { on = 0 } on' ../../docs/guides/one-to-many.md | sed 's/^void /static void /'
    printf 'void guide() { (void)control; (void)collect; (void)hand_out; }\n'
} >"$out/guide.cpp"
try "compile the guide's C++" "${cpp_compilers[0]}" "${flags_cpp[@]}" "${only[@]}" "$out/guide.cpp"
try 'compile the README in C' "${c_compilers[0]}" "${flags_c[@]}" "$out/readme.c" -o "$out/readme-c" "${link[@]}"
try 'compile the README in C++' "${cpp_compilers[0]}" "${flags_cpp[@]}" "$out/readme.cpp" -o "$out/readme-cpp" "${link[@]}"
try "compile the README's topic in C" "${c_compilers[0]}" "${flags_c[@]}" "$out/readme-topic.c" -o "$out/readme-topic-c" "${link[@]}"
try "compile the README's topic in C++" "${cpp_compilers[0]}" "${flags_cpp[@]}" "$out/readme-topic.cpp" -o "$out/readme-topic-cpp" "${link[@]}"
try "compile the README's inbox in C" "${c_compilers[0]}" "${flags_c[@]}" "$out/readme-inbox.c" -o "$out/readme-inbox-c" "${link[@]}"
try "compile the README's select in C++" "${cpp_compilers[0]}" "${flags_cpp[@]}" "$out/readme-select.cpp" -o "$out/readme-select-cpp" "${link[@]}"
try "compile the README's calls in C" "${c_compilers[0]}" "${flags_c[@]}" "$out/readme-rpc.c" -o "$out/readme-rpc-c" "${link[@]}"
try "compile the README's calls in C++" "${cpp_compilers[0]}" "${flags_cpp[@]}" "$out/readme-rpc.cpp" -o "$out/readme-rpc-cpp" "${link[@]}"
for program in readme-c readme-cpp; do
    run 60 "$out/$program" 'hello from the README' >"$log" 2>&1
    a=$?
    run 60 "$out/$program" >>"$log" 2>&1
    b=$?
    [ $a = 0 ] && [ $b = 0 ] && grep -q '^hello from the README (type 1)$' "$log" && good || bad "$program, two processes"
done

run 60 "$out/readme-topic-c" >"$out/got" 2>"$log" &
receiver=$!
run 60 "$out/readme-topic-c" 'hello to all' >>"$log" 2>&1
a=$?
wait $receiver
b=$?
cat "$out/got" >>"$log"
[ $a = 0 ] && [ $b = 0 ] && grep -q '^1: hello to all (0 lost before it)$' "$out/got" && good || bad "the README's topic in C, two processes"
run 60 "$out/readme-inbox-c" >"$out/got" 2>"$log" &
receiver=$!
run 60 "$out/readme-inbox-c" 'warm' >>"$log" 2>&1
a=$?
wait $receiver
b=$?
cat "$out/got" >>"$log"
[ $a = 0 ] && [ $b = 0 ] && [ "$(cat "$out/got")" = 'producer 1: warm' ] && good || bad "the README's inbox in C, two processes"
# Not by `run`, whose shell would be what is killed.
timeout 60 "${runner[@]}" "$out/readme-rpc-c" 2>"$log" &
server=$!
run 60 "$out/readme-rpc-c" 'louder' >"$out/got" 2>>"$log"
a=$?
kill $server
wait $server 2>/dev/null
cat "$out/got" >>"$log"
[ $a = 0 ] && [ "$(cat "$out/got")" = 'LOUDER' ] && good || bad "the README's calls in C, two processes"
rm -f "$RAMWAY_DIR"/text*
run 60 "$out/readme-rpc-cpp" >"$log" 2>&1
[ $? = 0 ] && [ "$(cat "$log")" = "$(printf '42\n404: no weight\nopened\nsold')" ] && good || bad "the README's calls in C++"
run 60 "$out/readme-select-cpp" >"$log" 2>&1
[ $? = 0 ] && [ "$(sort "$log")" = "$(printf 'a command\na picture')" ] && good || bad "the README's select in C++"
run 60 "$out/readme-topic-cpp" >"$log" 2>&1
[ $? = 0 ] && [ "$(head -1 "$log")" = 'newest: 3' ] && [ "$(sed -n '4p' "$log")" = '3: 3 (0 lost before it)' ] && good || bad "the README's topic in C++"

if [ -z "$cross" ]; then
    # ---- installed, and used by pkg-config, find_package and FetchContent ----
    prefix=$out/prefix
    try 'install' "${MAKE:-make}" -C .. install PREFIX="$prefix" CARGO_TARGET_DIR="$target"
    if command -v pkg-config >/dev/null; then
        export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
        # shellcheck disable=SC2046
        try 'pkg-config, shared' "${c_compilers[0]}" -std=c11 consumer/consumer.c $(pkg-config --cflags --libs ramway) -o "$out/with-pc"
        try 'pkg-config, shared, runs' env LD_LIBRARY_PATH="$prefix/lib" "$out/with-pc"
        # shellcheck disable=SC2046
        try 'pkg-config, static' "${c_compilers[0]}" -std=c11 consumer/consumer.c $(pkg-config --cflags ramway) "$prefix/lib/libramway.a" \
            $(pkg-config --libs-only-l --static ramway | sed 's/-lramway//') -o "$out/with-pc"
        try 'pkg-config, static, runs' "$out/with-pc"
        try 'pkg-config knows the version' test "$(pkg-config --modversion ramway)" = "$RAMWAY_VERSION"
    else
        echo 'pkg-config is not there: not tested'
    fi
    if command -v cmake >/dev/null; then
        try 'find_package' cmake -S consumer -B "$out/consumer-found" -DCMAKE_PREFIX_PATH="$prefix"
        try 'find_package, build' cmake --build "$out/consumer-found"
        try 'find_package, C runs' "$out/consumer-found/consumer_c"
        try 'find_package, C++ runs' "$out/consumer-found/consumer_cpp"
        try 'FetchContent' cmake -S consumer -B "$out/consumer-fetched" -DRAMWAY_SOURCE="$capi/.." \
            -DRAMWAY_CARGO_TARGET_DIR="$target"
        try 'FetchContent, build' cmake --build "$out/consumer-fetched"
        try 'FetchContent, C runs' "$out/consumer-fetched/consumer_c"
        try 'FetchContent, C++ runs' "$out/consumer-fetched/consumer_cpp"
    else
        echo 'cmake is not there: not tested'
    fi
    try 'uninstall' "${MAKE:-make}" -C .. uninstall PREFIX="$prefix"
    find "$prefix" -type f -o -type l >"$log"
    [ -s "$log" ] && bad 'uninstall leaves files' || good
    try 'install with DESTDIR' "${MAKE:-make}" -C .. install PREFIX=/opt/ramway DESTDIR="$out/dest" CARGO_TARGET_DIR="$target"
    try 'DESTDIR: files' test -f "$out/dest/opt/ramway/lib/libramway.so.$RAMWAY_VERSION" -a -f "$out/dest/opt/ramway/include/ramway.hpp"
    try 'DESTDIR: not written into files' sh -c "! grep -rl '$out/dest' '$out/dest/opt/ramway/lib/pkgconfig' '$out/dest/opt/ramway/lib/cmake'"
fi

ls -A "$RAMWAY_DIR" >"$log"
[ -s "$log" ] && bad 'nothing is left behind' || good

if [ $skipped = 0 ]; then echo "$passed passed, $failed failed"; else echo "$passed passed, $failed failed, $skipped skipped"; fi
[ $failed = 0 ]
