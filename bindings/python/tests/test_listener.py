"""Listeners: many connectors, some of which are no good."""

import os
import select
import socket
import time
from pathlib import Path

import pytest
import ramway
from ramway import Bus, Listener
from support import LONG, Child, Thread, eventually, run, sleeps


def test_accepts_one_after_another(directory: Path) -> None:
    with Listener.bind("echo", 4096) as listener:
        assert listener.path == str(directory / "echo.sock") and listener.name == "echo" and not listener.closed
        assert (directory / "echo.sock").is_socket()
        for number in range(3):
            connecting = Thread(Bus.connect, "echo")
            with listener.accept(LONG) as bus, connecting.result() as peer:
                bus.send(b"%d" % number)
                assert peer.recv_bytes(LONG) == b"%d" % number
                peer.send(b"back")
                assert bus.recv_bytes(LONG) == b"back"
        assert (listener.refused, listener.last_refusal) == (0, None)
    assert sorted(os.listdir(directory)) == []


def test_serves_processes_side_by_side() -> None:
    code = """
        import sys, ramway
        with ramway.Bus.connect("service") as bus:
            for n in range(50):
                bus.send(f"{sys.argv[1]}:{n}".encode())
                assert bus.recv_bytes() == f"{sys.argv[1]}:{n}".encode()
    """

    def echo(bus: Bus) -> None:
        with bus:
            for message in bus:
                with message:
                    bus.send(message)

    with Listener.bind("service", 4096) as listener:
        children = [Child(code, number) for number in range(3)]
        try:
            echoes = [Thread(echo, listener.accept(LONG)) for _ in children]
            for child in children:
                child.finish()
            for thread in echoes:
                thread.result()
        finally:
            for child in children:
                child.__exit__()


def test_iteration_ends_when_it_is_closed() -> None:
    listener = Listener.bind("l", 4096)

    def serve() -> int:
        count = 0
        for bus in listener:
            bus.close()
            count += 1
        return count

    serving = Thread(serve)
    for _ in range(3):
        Bus.connect("l").close()
    time.sleep(0.05)
    listener.close()
    assert serving.result() == 3
    assert list(listener) == []


def test_time_out() -> None:
    with Listener.bind("l") as listener:
        for timeout in (0, 0.2):
            started = time.monotonic()
            with pytest.raises(ramway.TimedOutError, match="'l'"):
                listener.accept(timeout)
            assert time.monotonic() - started >= timeout
        with pytest.raises(TimeoutError):
            listener.accept(timeout=0)


def test_close_is_final_and_can_be_repeated() -> None:
    listener = Listener.bind("l")
    accepting = Thread(listener.accept)
    time.sleep(0.05)
    listener.close()
    listener.close()
    with pytest.raises(ramway.DetachedError):
        accepting.result()
    assert listener.closed and "closed" in repr(listener)
    for call in (listener.accept, listener.fileno, listener.__enter__):
        with pytest.raises(ramway.DetachedError, match="'l' is closed"):
            call()
    with pytest.raises(ramway.DetachedError):
        listener.refused  # noqa: B018
    with Listener.bind("l"):
        pass


def test_buses_outlive_their_listener() -> None:
    listener = Listener.bind("l", 4096)
    connecting = Thread(Bus.connect, "l")
    bus = listener.accept(LONG)
    peer = connecting.result()
    listener.close()
    del listener
    bus.send(b"still here")
    assert peer.recv_bytes(LONG) == b"still here"
    bus.close()
    peer.close()


def test_the_descriptor_is_readable_when_accept_may_get_on() -> None:
    with Listener.bind("l", 4096) as listener:
        fd = listener.fileno()
        assert select.select([fd], [], [], 0.1)[0] == []
        connecting = Thread(Bus.connect, "l")
        bus = None
        deadline = time.monotonic() + LONG
        while bus is None:
            assert time.monotonic() < deadline
            assert select.select([fd], [], [], LONG)[0] == [fd]
            try:
                bus = listener.accept(0)
            except ramway.TimedOutError:
                pass
        bus.close()
        connecting.result().close()


def test_strangers_are_refused_and_counted() -> None:
    with Listener.bind("l", 4096, handshake_timeout=0.2) as listener:
        silent = socket.socket(socket.AF_UNIX)
        silent.connect(listener.path)
        rude = socket.socket(socket.AF_UNIX)
        rude.connect(listener.path)
        rude.sendall(b"GET / HTTP/1.1\r\n" + b"x" * 64)
        hasty = socket.socket(socket.AF_UNIX)
        hasty.connect(listener.path)
        hasty.close()
        connecting = Thread(Bus.connect, "l")
        with listener.accept(LONG) as bus, connecting.result() as peer:
            bus.send(b"good")
            assert peer.recv_bytes(LONG) == b"good"

        def all_refused() -> bool:
            with pytest.raises(ramway.TimedOutError):
                listener.accept(0.05)
            return listener.refused == 3

        eventually("three refusals", all_refused)
        assert isinstance(listener.last_refusal, str) and listener.last_refusal
        silent.close()
        rude.close()


def test_the_name_is_taken_while_it_lives_and_free_after(directory: Path) -> None:
    with Listener.bind("l"):
        with pytest.raises(ramway.AlreadyExistsError, match="'l'"):
            Listener.bind("l")
        with pytest.raises(FileExistsError):
            Bus.listen("l", timeout=0)
    code = """
        import ramway, time
        listener = ramway.Listener.bind("l")
        print("listening")
        time.sleep(1000)
    """
    with Child(code) as child:
        child.line()
        with pytest.raises(ramway.AlreadyExistsError):
            Listener.bind("l")
        child.kill()
    # What a killed listener left is in nobody's way.
    assert (directory / "l.sock").exists()
    with Listener.bind("l") as listener:
        connecting = Thread(Bus.connect, "l")
        listener.accept(LONG).close()
        connecting.result().close()


def test_a_file_that_is_no_socket_is_left_alone(directory: Path) -> None:
    (directory / "l.sock").write_text("mine")
    with pytest.raises(ramway.AlreadyExistsError):
        Listener.bind("l")
    assert (directory / "l.sock").read_text() == "mine"
    with pytest.raises(ramway.InvalidArgumentError, match="regular file"):
        Bus.connect(directory / "l.sock", timeout=0.1)


def test_paths_modes_and_long_paths(directory: Path) -> None:
    deep = directory / ("d" * 120)
    deep.mkdir()
    with Listener.bind(deep / "socket", 4096, mode=0o660) as listener:
        assert (deep / "socket").stat().st_mode & 0o777 == 0o660
        connecting = Thread(Bus.connect, str(deep / "socket"))
        with listener.accept(LONG), connecting.result():
            pass
    with Listener.bind("others", allow_uids=[12345, os.getuid()]) as listener:
        assert Path(listener.path).stat().st_mode & 0o777 == 0o666


def test_one_direction_only() -> None:
    with Listener.bind("l", to_peer=8192, from_peer=0) as listener:
        connecting = Thread(Bus.connect, "l")
        with listener.accept(LONG) as bus, connecting.result() as peer:
            bus.send(b"down")
            assert peer.recv_bytes(LONG) == b"down"
            assert bus.sender.capacity == 8192 and peer.receiver.capacity == 8192
            with pytest.raises(ramway.UnsupportedError, match="is send-only"):
                bus.recv()
            with pytest.raises(ramway.UnsupportedError, match="is receive-only"):
                peer.send(b"up")
            with pytest.raises(OSError):
                bus.receiver  # noqa: B018
            with pytest.raises(ramway.UnsupportedError):
                iter(bus)


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ((), {}, TypeError),
        ((None,), {}, TypeError),
        ((7,), {}, TypeError),
        (("",), {}, ramway.InvalidArgumentError),
        ((".hidden",), {}, ramway.InvalidArgumentError),
        (("a.sock",), {}, ramway.InvalidArgumentError),
        (("x" * 81,), {}, ramway.InvalidArgumentError),
        (("l", -1), {}, (ValueError, OverflowError)),
        (("l", 1 << 63), {}, (ramway.InvalidArgumentError, ramway.NoSpaceError)),
        (("l", 1.0), {}, TypeError),
        (("l", 0), {}, ramway.InvalidArgumentError),
        (("l", 4096, 4096), {}, TypeError),
        (("l",), {"align": 24}, ramway.InvalidArgumentError),
        (("l",), {"align": 8192}, ramway.InvalidArgumentError),
        (("l",), {"mode": -1}, (ValueError, OverflowError)),
        (("l",), {"allow_uids": 5}, TypeError),
        (("l",), {"allow_uids": "me"}, TypeError),
        (("l",), {"allow_uids": [-1]}, (ValueError, OverflowError)),
        (("l",), {"handshake_timeout": -1}, ramway.InvalidArgumentError),
        (("l",), {"handshake_timeout": float("nan")}, ramway.InvalidArgumentError),
        (("l",), {"backlog": -1}, (ValueError, OverflowError)),
        (("l",), {"wait": "never"}, ramway.InvalidArgumentError),
        (("l",), {"no_such_option": 1}, TypeError),
    ],
)
def test_wrong_arguments(
    directory: Path, arguments: tuple[object, ...], options: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Listener.bind(*arguments, **options)  # type: ignore[arg-type]
    assert os.listdir(directory) == []


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1", [None]])
def test_wrong_timeouts(timeout: object) -> None:
    with Listener.bind("l") as listener, pytest.raises((ValueError, TypeError)):
        listener.accept(timeout)  # type: ignore[arg-type]


def test_a_flood_is_served_in_the_end() -> None:
    code = """
        import threading, ramway
        def one():
            with ramway.Bus.connect("l", timeout=60) as bus:
                bus.send(b"x")
                bus.recv_bytes()
        threads = [threading.Thread(target=one) for _ in range(40)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """
    with Listener.bind("l", 4096, backlog=2) as listener, Child(code) as child:
        for _ in range(40):
            with listener.accept(LONG) as bus:
                bus.send(bus.recv_bytes(LONG))
        child.finish()


def test_an_idle_listener_sleeps() -> None:
    code = """
        import ramway
        listener = ramway.Listener.bind("l")
        print("listening")
        listener.accept()
    """
    with Child(code) as child:
        child.line()
        eventually("it sleeps", lambda: sleeps(child.pid))
        Bus.connect("l").close()
        child.finish()


def test_exits_with_a_listener_open(directory: Path) -> None:
    assert run('import ramway; listener = ramway.Listener.bind("l"); print(listener.path)') == [
        str(directory / "l.sock")
    ]
    assert os.listdir(directory) == []
