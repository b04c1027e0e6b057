# Reads the log of `cargo test` (stdout and stderr together) and prints "passed failed skipped". With `-v filtered=1` what a filter
# left out is skipped too.
#
# cargo says "Running ..." or "Doc-tests ..." before each test binary, and a binary ends with "test result: ...".
# A test may run its own binary again as a child whose "test result:" line lands in the same log, so of each binary
# only the last line counts. rustdoc prints one line per group of examples: there all of them count.
# A binary without a line crashed or was stopped: one failure.

function add(line,    i, n, parts, words) {
    n = split(line, parts, /[.;] /)
    for (i = 1; i <= n; i++) {
        split(parts[i], words, " ")
        if (words[2] == "passed") passed += words[1]
        else if (words[2] == "failed") failed += words[1]
        else if (words[2] == "ignored" || (words[2] == "filtered" && filtered)) skipped += words[1]
    }
}

function close_section() {
    if (!open_section) return
    if (last != "") add(last)
    else if (!saw_result) { failed++; print "no result (crashed or stopped): " title > "/dev/stderr" }
    open_section = 0
}

/^ +(Running|Doc-tests) / {
    close_section()
    open_section = 1; doc = ($1 == "Doc-tests"); last = ""; saw_result = 0; title = $0
    sub(/^ +/, "", title)
    next
}

# A child's line may follow other text on the same line; libtest's own starts one.
/^test result: / {
    saw_result = 1
    if (doc) add($0); else last = $0
}

END { close_section(); printf "%d %d %d\n", passed, failed, skipped }
