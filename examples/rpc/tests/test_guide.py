"""The Python programs of the guide on RPC."""

import signal
from pathlib import Path

import pytest
from conftest import GUIDES, Terminal, blocks
from ramway.rpc import Client


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_drains(number: int, tmp_path: Path, directory: Path) -> None:
    (text,) = (block for block in blocks((GUIDES / "rpc.md").read_text(), "python") if block.startswith("# drain.py\n"))
    (tmp_path / "drain.py").write_text(text)
    with Terminal("exec python3 drain.py", tmp_path) as server, Client.connect("quick", timeout=100) as client:
        assert client.call("Echo", b"here", timeout=100).body == b"here"
        server.signal(number)
        assert server.output() == ""
    assert list(directory.iterdir()) == []
