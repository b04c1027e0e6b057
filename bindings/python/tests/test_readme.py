"""Every program in README.md and on the front page runs. Blocks of a section that name a file run together."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import LONG

README = Path(__file__).parent.parent / "README.md"
FRONT_PAGE = README.parents[2] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def programs(page: Path) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for section in page.read_text().split("\n## "):
        blocks = BLOCK.findall(section)
        title = section.partition("\n")[0]
        together = [block for block in blocks if block.startswith("# ")]
        found += [(title, [block]) for block in blocks if block not in together]
        if together:
            found.append((title, together))
    return found


@pytest.mark.parametrize(
    "blocks",
    [pytest.param(blocks, id=title) for page in (README, FRONT_PAGE) for title, blocks in programs(page)],
)
def test_blocks(blocks: list[str], tmp_path: Path) -> None:
    if any("import numpy" in block for block in blocks):
        pytest.importorskip("numpy")
    running = []
    for index, block in enumerate(blocks):
        program = tmp_path / f"{index}.py"
        program.write_text(block)
        running.append(
            subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
    try:
        for process in running:
            output, _ = process.communicate(timeout=LONG)
            assert process.returncode == 0, output
    finally:
        for process in running:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def test_there_are_programs() -> None:
    assert len(programs(README)) >= 7
    assert len(programs(FRONT_PAGE)) == 1
