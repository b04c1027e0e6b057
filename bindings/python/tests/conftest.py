"""A Ramway directory of its own for every test."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where plain names stand, for this process and those that the test starts."""
    path = Path(tempfile.mkdtemp(prefix="ramway-test-", dir="/dev/shm"))
    monkeypatch.setenv("RAMWAY_DIR", str(path))
    yield path
    shutil.rmtree(path, ignore_errors=True)
