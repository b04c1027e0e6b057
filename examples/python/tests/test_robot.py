"""The recorder in Python beside the camera and the controller in Rust, all of which are killed."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from conftest import LONG, RUST, Run

PIXELS = 64 * 64
RECORD = 8 + PIXELS


def until(what: str, true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def test_every_picture_is_recorded_once_though_recorder_and_camera_are_killed(tmp_path: Path) -> None:
    record = tmp_path / "record"
    recorded = lambda: record.stat().st_size // RECORD if record.exists() else 0  # noqa: E731
    recorder = ("robot_recorder.py", "pictures", record)
    camera = (RUST / "robot", "camera", "pictures", 500)
    with Run(RUST / "robot", "controller", "pictures") as controller:
        with Run(*recorder), Run(*camera, stdin=subprocess.PIPE):
            until("the first recorder writes", lambda: recorded() > 100)
        # Both were killed in the middle of whatever they did; say that the recorder had written a part of a picture.
        with record.open("ab") as file:
            file.write(bytes(1000))
        with Run(*recorder) as second:
            with Run(*camera, stdin=subprocess.PIPE):
                until("the second recorder writes", lambda: recorded() > 400)
            before = recorded()
            with Run(*camera, stdin=subprocess.PIPE) as last:
                until("the next camera's pictures come", lambda: recorded() > before + 100)
                drawn = int(last.output().split()[0])
            assert second.output() == f"{drawn} pictures are in {record}\n"
        assert controller.output().startswith(f"{drawn} pictures, 0 missed, ")
    data = record.read_bytes()
    assert len(data) == drawn * RECORD
    for index in range(drawn):
        number, pixels = index + 1, data[index * RECORD + 8 : (index + 1) * RECORD]
        assert data[index * RECORD : index * RECORD + 8] == number.to_bytes(8, "little")
        assert pixels == bytes([number & 255]) * PIXELS
