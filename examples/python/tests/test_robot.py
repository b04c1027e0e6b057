"""The robot in three languages: Rust, C++ and Python, whose processes are killed and stopped."""

import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from conftest import CPP, LONG, RUST, Run

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
    check_record(record, drawn)


def check_record(record: Path, drawn: int) -> None:
    """Each picture once, in its order."""
    data = record.read_bytes()
    assert len(data) == drawn * RECORD
    for index in range(drawn):
        number, pixels = index + 1, data[index * RECORD + 8 : (index + 1) * RECORD]
        assert data[index * RECORD : index * RECORD + 8] == number.to_bytes(8, "little")
        assert pixels == bytes([number & 255]) * PIXELS


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def test_a_viewer_that_is_stopped_holds_up_nobody(tmp_path: Path) -> None:
    """The camera and the viewer in Rust, the controller in C++, the recorder in Python."""
    # More than the topic holds.
    lap = (1 << 20) // RECORD + 1
    record, control, view = tmp_path / "record", tmp_path / "control", tmp_path / "view"
    recorded = lambda: record.stat().st_size // RECORD if record.exists() else 0  # noqa: E731
    controlled = lambda: (numbers(control.read_text()) or [0])[-1]  # noqa: E731
    recorder = ("robot_recorder.py", "pictures", record)
    with (
        Run(RUST / "robot", "viewer", "pictures", into=view) as viewer,
        Run(CPP / "robot_controller", "pictures", into=control) as controller,
    ):
        with Run(*recorder) as first:
            camera = Run(RUST / "robot", "camera", "pictures", 200, stdin=subprocess.PIPE)
            with camera:
                until("the viewer shows a picture", lambda: "first picture" in view.read_text())

                # The viewer is stopped for 5 s, and for as long as the others need to go around the log five times. If
                # one of them waited for it, they would never get there.
                viewer.process.send_signal(signal.SIGSTOP)
                begin, goal = time.monotonic(), max(recorded(), controlled()) + 5 * lap
                until("the controller goes on", lambda: controlled() >= goal)
                until("the recorder goes on", lambda: recorded() >= goal)
                time.sleep(max(0.0, begin + 5 - time.monotonic()))

                # The recorder is killed meanwhile, in the middle of whatever it does. The topic keeps what it has not
                # written; the camera goes on until the log is full of that, and then waits for the recorder alone.
                first.process.kill()
                first.process.wait()
                goal = recorded() + 2 * lap
                with Run(*recorder) as second:
                    until("the second recorder goes on", lambda: recorded() >= goal)
                    until("the controller goes on with it", lambda: controlled() >= goal)
                    viewer.process.send_signal(signal.SIGCONT)
                    until("the viewer says what it has missed", lambda: "missed" in view.read_text())
                    drawn = numbers(camera.output())[0]
                    assert second.output() == f"{drawn} pictures are in {record}\n"
        # Every picture, in place, also those that came while the viewer was stopped.
        assert controller.output().splitlines()[-1].startswith(f"{drawn} pictures, 0 missed, ")
        lines = viewer.output().splitlines()
    check_record(record, drawn)
    # The viewer's gaps are exact: what it has shown and what it has missed are all of the numbers that went by.
    shown, missed, start, end = numbers(lines[-1])
    gaps = sum(numbers(line)[0] for line in lines if line.startswith("missed"))
    assert missed == gaps and missed > 4 * lap
    assert (shown + missed, end) == (end - start + 1, drawn)
