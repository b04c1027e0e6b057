"""Every Python program of the guides is run: those of one section at the same time, as files beside each other."""

import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import EXAMPLES, LONG

GUIDES = EXAMPLES.parents[1] / "docs" / "guides"


@dataclass
class Section:
    """What stands below one heading: programs by their file names, and what one of them prints."""

    title: str
    programs: dict[str, str] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)


def sections(guide: Path) -> list[Section]:
    found, chapter, last = [Section("")], "", ""
    for match in re.finditer(r"^(##+) ([^\n]*)$|^```(\w+)\n(.*?)^```$", guide.read_text(), re.MULTILINE | re.DOTALL):
        level, title, language, text = match.groups()
        if level:
            chapter = title if level == "##" else chapter
            found.append(Section(title if level == "##" else f"{chapter}: {title}"))
        elif language == "python":
            name = re.match(r"# (\w+\.py)\n", text)
            assert name is not None, f"a program without a file's name: {text}"
            if name[1] in found[-1].programs:
                found.append(Section(f"{found[-1].title}: {name[1]}"))
            last = name[1]
            found[-1].programs[last] = text
        elif language == "text":
            found[-1].printed[last] = text
    return [section for section in found if section.programs]


CASES = [
    pytest.param(section, id=f"{guide.stem}: {section.title}")
    for guide in sorted([*GUIDES.glob("*python*.md"), GUIDES / "one-to-many.md"])
    for section in sections(guide)
]


@pytest.mark.parametrize("section", CASES)
def test_programs_of_a_section(section: Section, tmp_path: Path) -> None:
    for name, text in section.programs.items():
        (tmp_path / name).write_text(text)
    children = {}
    try:
        for name in section.programs:
            command = [sys.executable, "-W", "error::ResourceWarning", name]
            pipe = subprocess.PIPE
            children[name] = subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True)
            time.sleep(0.1)
        for name, child in children.items():
            out, err = child.communicate(timeout=LONG)
            assert child.returncode == 0, f"{name}: {out}{err}"
            # What Python's own shared memory has to say about itself is its affair.
            assert err == "" or "shared_memory" in section.programs[name], f"{name}: {err}"
            assert name not in section.printed or out == section.printed[name]
    finally:
        for child in children.values():
            child.kill()
            child.communicate()


def test_before_and_after_come_to_the_same(tmp_path: Path) -> None:
    printed: dict[str, set[str]] = {}
    for section in sections(GUIDES / "shared-memory-in-python.md"):
        chapter, _, side = section.title.rpartition(": ")
        if side in ("Before", "After") and "frames.py" in section.programs:
            path = tmp_path / side / "frames.py"
            path.parent.mkdir()
            path.write_text(section.programs["frames.py"])
            out = subprocess.run(
                [sys.executable, path], capture_output=True, text=True, timeout=LONG, check=True
            ).stdout
            printed.setdefault(chapter, set()).add(out)
    assert list(printed.values()) == [{"190.0\n"}]
