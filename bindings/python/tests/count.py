"""Prints passed, failed and skipped of a JUnit report; "0 0 0" if it cannot be read."""

import sys
import xml.etree.ElementTree as ET

try:
    suites = list(ET.parse(sys.argv[1]).getroot().iter("testsuite"))
except (OSError, ET.ParseError):
    suites = []


def total(*keys: str) -> int:
    return sum(int(suite.get(key, 0)) for suite in suites for key in keys)


bad, skipped = total("failures", "errors"), total("skipped")
print(total("tests") - bad - skipped, bad, skipped)
