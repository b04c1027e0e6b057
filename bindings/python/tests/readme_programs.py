"""Writes each Python program of README.md into a directory: for mypy."""

import re
import sys
from pathlib import Path

blocks = re.findall(r"^```python\n(.*?)^```$", (Path(__file__).parent.parent / "README.md").read_text(), re.M | re.S)
assert len(blocks) >= 10
for number, block in enumerate(blocks):
    Path(sys.argv[1], f"program_{number}.py").write_text(block)
