"""Every program of the guide on encodings, as the server of every one of the same encoding."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest
from conftest import GUIDES, ROOT, Terminal
from ramway.rpc import CallError, Client

PAGE = (GUIDES / "rpc-encodings.md").read_text()
HERE = ROOT / "examples" / "rpc" / "distance"
# Of each encoding, by the names that the programs' first lines have.
PROGRAMS = {
    "plain": ["c", "cpp", "rs", "py", "go"],
    "proto": ["rs", "py", "go"],
    "flat": ["rs", "py"],
}


def programs(directory: Path) -> set[str]:
    """Writes them down."""
    found = re.findall(
        r"^```(?:c|cpp|go|proto|python)\n(?:#|//|/\*) ([\w.]+)[^\n]*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
    for name, text in found:
        (directory / name).write_text(text)
    return {name for name, _ in found}


def run(*command: object, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with all of them, compiled."""
    path = tmp_path_factory.mktemp("distance")
    found = programs(path)
    assert found == {
        *(f"plain.{end}" for end in ("c", "cpp", "py", "go")),
        *(f"proto.{end}" for end in ("py", "go")),
        *("point.proto", "flat.py", "own.py"),
    }
    lib = os.environ["RAMWAY_LIB"]
    link = [f"-L{lib}", "-lramway", "-lm", f"-Wl,-rpath,{lib}"]
    warn = ["-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wshadow", f"-I{ROOT}/capi/include", f"-I{path}"]
    for source, compiler, to in (
        ("main.c", ["cc", "-std=c11"], "plain-c"),
        ("main.cpp", ["c++", "-std=c++20"], "plain-cpp"),
    ):
        run(*compiler, *warn, HERE / "c" / source, "-o", path / to, *link, cwd=path)

    module = HERE / "go"
    run("go", "build", "-o", path / "protoc-gen-go", "google.golang.org/protobuf/cmd/protoc-gen-go", cwd=module)
    # The page's lines.
    for line in re.findall(r"^python3 -m grpc_tools.*", PAGE, re.MULTILINE):
        run("sh", "-ec", line, cwd=path, PATH=f"{path}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    for program in ("plain", "proto"):
        there = path / program
        shutil.copytree(module, there)
        run("go", "mod", "edit", f"-replace=github.com/ramway/ramway/bindings/go={ROOT}/bindings/go", cwd=there)
        shutil.copy(path / f"{program}.go", there)
        if program == "proto":
            shutil.copytree(path / "geometry", there / "geometry")
        assert run("gofmt", "-l", ".", cwd=there) == ""
        run("go", "vet", ".", cwd=there)
        run("go", "build", "-o", path / f"{program}-go", ".", cwd=there)
    return path


def command(built: Path, program: str, language: str, what: str, *words: object) -> str:
    rest = " ".join(str(word) for word in words)
    match language:
        case "py":
            return f"PYTHONPATH={built} exec python3 {HERE}/distance.py {what} {program} {rest}"
        case "rs":
            return f"exec {os.environ['RAMWAY_EXAMPLES_RUST']}/distance {what} {program} {rest}"
        case _:
            return f"exec {built}/{program}-{language} {what} {rest}"


PAIRS = [
    *((program, *pair) for program, languages in PROGRAMS.items() for pair in product(languages, languages)),
    ("own", "rs", "rs"),
    ("own", "py", "py"),
]


@pytest.mark.parametrize(("program", "server", "client"), PAIRS)
def test_a_server_and_a_client_of_one_encoding(
    program: str, server: str, client: str, built: Path, directory: Path
) -> None:
    with Terminal(command(built, program, server, "serve", "distance")) as serving:
        # However long it takes to start: clients wait for 10 s.
        while not (directory / "distance.sock").exists():
            assert serving.process.poll() is None, serving.output()
            time.sleep(0.01)
        with Terminal(command(built, program, client, "ask", "distance", 3, 4)) as asking:
            assert float(asking.output()) == 5
        # What is no message is the handler's error.
        with Client.connect("distance") as direct:
            with pytest.raises(CallError) as raised:
                direct.call("Point.Distance", b"\xff", timeout=100)
            assert (raised.value.status, raised.value.code) == ("Application", 1)
        serving.signal(signal.SIGKILL)
