#!/bin/sh
# `sh surefire.sh DIRECTORY` adds up Maven's test reports there: `N passed, N failed, N skipped`. No reports, or none with a
# test in it, is one failure: tests that did not run have not passed.
set -u
sed -n 's/.*<testsuite [^>]*/&/p' "$1"/TEST-*.xml 2>/dev/null | awk '
    function attribute(name) {
        return match($0, " " name "=\"[0-9]+\"") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4) + 0 : 0
    }
    { tests += attribute("tests"); failed += attribute("failures") + attribute("errors"); skipped += attribute("skipped") }
    END {
        if (tests == 0) failed = 1
        printf "%d passed, %d failed, %d skipped\n", tests == 0 ? 0 : tests - failed - skipped, failed, skipped
    }'
