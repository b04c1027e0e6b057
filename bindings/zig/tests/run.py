"""The tests of the Zig port: `run.py PLAY PROGRAM RAMWAY`, the paths of tests/play.zig and src/main.zig as built, and of the
Rust side's command. The last line counts.
"""

import concurrent.futures
import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

PLAY, PROGRAM, RAMWAY = sys.argv[1:4]
ROOT = pathlib.Path(__file__).resolve().parents[3]
MS = 1_000_000
LONG = 60  # seconds: far more than anything here takes
F_OFD_SETLK, FUTEX_WAKE, SYS_FUTEX = 37, 1, {"x86_64": 202, "aarch64": 98}[os.uname().machine]
BLOCK0, TAIL, HEAD, WAIT = 0x400, 0x080, 0x100, {"producer": 0x180, "consumer": 0x200}


class Play:
    """One end of a ring in a process of its own."""

    def __init__(self, role, path, how="open", capacity=0, align=0):
        self.role = role
        self.process = subprocess.Popen([PLAY, role, path, how, str(capacity), str(align)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.attached = self.hear()

    def hear(self):
        return self.process.stdout.readline().rstrip("\n")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        self.tell(line)
        return self.hear()

    def receive(self, timeout_ms=LONG * 1000, count=1_000_000):
        """All that `recv` says up to its end."""
        self.tell(f"recv {timeout_ms * MS} {count}")
        return self.rest()

    def rest(self):
        heard = []
        while not heard or heard[-1].startswith("message "):
            heard.append(self.hear())
        return heard

    def send(self, length, type_id=0, tag=0, timeout_ms=0, count=1):
        return self.ask(f"put {type_id} {tag} {length} {timeout_ms * MS} {count}")

    def close(self):
        self.process.stdin.close()
        said = self.hear()
        expect(said, "closed")
        expect(self.process.wait(LONG), 0)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(LONG)


def expect(found, wanted, what=""):
    if found != wanted:
        raise AssertionError(f"{what}: found {found!r}, expected {wanted!r}")


def message(length, type_id=0, tag=0, seq=0):
    payload = bytes((seq + i) % 256 for i in range(length))
    return f"message type_id={type_id} tag={tag} len={length} crc32={zlib.crc32(payload)}"


def lock(file, byte, exclusive):
    flock = struct.pack("hhqqi4x", fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK, os.SEEK_SET, byte, 1, 0)
    fcntl.fcntl(file, F_OFD_SETLK, flock)


def futex_wake(address):
    ctypes.CDLL(None, use_errno=True).syscall(SYS_FUTEX, ctypes.c_void_p(address), FUTEX_WAKE, 2**31 - 1, None, None, 0)


@contextlib.contextmanager
def words(path):
    """The header page of a ring, mapped."""
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), os.fstat(file.fileno()).st_size) as memory:
        yield memory


def write_words(path, runs, role, wake):
    """Writes runs of bytes as another process would, those of 4 and 8 bytes by one store, and wakes a reader."""
    with words(path) as memory:
        for run in runs:
            data = bytes.fromhex(run["hex"])
            kind = {4: ctypes.c_uint32, 8: ctypes.c_uint64}.get(len(data))
            if kind:
                word = kind.from_buffer(memory, run["at"])
                word.value = int.from_bytes(data, "little")
                del word
            else:
                memory[run["at"] : run["at"] + len(data)] = data
        if wake:
            word = ctypes.c_uint32.from_buffer(memory, BLOCK0 + WAIT[role])
            word.value = 0
            futex_wake(ctypes.addressof(word))
            del word


# The vectors: every image of a ring, as both roles read it.


def make_image(path, segment):
    with open(path, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.truncate(segment["size"])
        for run in segment["bytes"]:
            file.seek(run["at"])
            file.write(bytes.fromhex(run["hex"]))


def play_vector(directory, segment, reader):
    path = os.path.join(directory, "ring")
    make_image(path, segment)
    with contextlib.ExitStack() as stack:
        if "held" in reader:
            holder = stack.enter_context(open(path, "r+b"))
            lock(holder, 0, exclusive=False)
            lock(holder, {"producer": 1, "consumer": 2}[reader["held"]], exclusive=True)
        end = Play(reader["as"], path)
        stack.callback(end.process.wait, LONG)
        stack.callback(end.process.stdin.close)
        if reader["open"] != "ok":
            expect(end.attached.split()[:2], ["error", reader["open"]], "open")
        else:
            wanted = "attached epoch={epoch} peer_epoch={peer_epoch} capacity={capacity} max={max}".format(**reader["attached"])
            expect(end.attached, wanted, "attached")
            play_attached(end, path, reader)
            end.close()
    with open(path, "rb") if os.path.exists(path) else contextlib.nullcontext() as file:
        expect("stays" if file else "gone", reader["name_after"], "the name")
        for run in reader.get("leaves", []) if file else []:
            file.seek(run["at"])
            wanted, mask = bytes.fromhex(run["hex"]), bytes.fromhex(run.get("mask", "ff" * (len(run["hex"]) // 2)))
            found = file.read(len(wanted))
            expect(bytes(a & b for a, b in zip(found, mask)).hex(), wanted.hex(), f"what it leaves at {run['at']}")


def play_attached(end, path, reader):
    then = reader.get("then")
    if then and then["when"] == "paused":
        write_words(path, then["bytes"], reader["as"], wake=False)
    if reader["as"] == "consumer":
        end.tell(f"recv {250 * MS} 1000000")
        if then and then["when"] == "waiting":
            time.sleep(0.05)
            write_words(path, then["bytes"], reader["as"], wake=True)
        wanted = ["message type_id={type_id} tag={tag} len={len} crc32={crc32}".format(**m) for m in reader.get("messages", [])]
        expect(end.rest(), wanted + ["end " + reader["end"]], "what it received")
        if reader["end"] == "Corrupt":
            expect(end.receive(0), ["end Corrupt"], "a reader that is dead")
        return
    if "last" in reader:
        expect(end.ask("last"), "last " + reader["last"], "the last tag")
    payload = bytes(i % 256 for i in range(reader["send"])) if reader["send"] < 1 << 20 else None
    tag = zlib.crc32(payload) << 32 if payload is not None else 0
    said = end.send(reader["send"] if payload is not None else 1 << 20, tag=tag)
    expect(said, "sent" if reader["end"] == "sent" else "error " + reader["end"], "what it sent")


# Zig with Zig, where the page has the bytes.


def new(directory, role, **options):
    end = Play(role, os.path.join(directory, "ring"), "create", **options)
    assert end.attached.startswith("attached epoch="), end.attached
    return end


def test_bytes_of_the_page(directory):
    """Sections 4: what two messages look like, at an alignment of 16 and of 64."""
    for align, first, wanted in [(16, 0, {0: "0500000007000000 8877665544332211 0001020304", 32: "0000000008000000 0000000000000000"}),
                                 (64, 48, {48: "0500000007000000 8877665544332211 0001020304", 112: "0000000008000000 0000000000000000"})]:
        tx = new(directory, "producer", capacity=4096, align=align)
        expect(tx.send(5, 7, 0x1122334455667788), "sent")
        expect(tx.send(0, 8), "sent")
        with words(os.path.join(directory, "ring")) as memory:
            for at, data in wanted.items():
                data = bytes.fromhex(data)
                expect(memory[4096 + at : 4096 + at + len(data)].hex(), data.hex(), f"data {at}")
            expect(struct.unpack_from("<Q", memory, BLOCK0 + TAIL)[0], {16: 48, 64: 176}[align], "tail")
            expect(memory[0:0x28].hex(), "52414d5741590d0a0d0c0b0a01000000" "02000000000000000000000000000000" "0020000000000000", "header")
            expect(memory[0x400:0x41C].hex(), "0010000000000000" "0010000000000000" "0000000000000000" + struct.pack("<I", align).hex(), "geometry")
        rx = Play("consumer", os.path.join(directory, "ring"))
        tx.close()
        expect(rx.receive(), [message(5, 7, 0x1122334455667788), message(0, 8), "end Closed"])
        rx.close()
        expect(os.listdir(directory), [], "the last one out removes the name")


def test_messages_across_the_end(directory):
    """Each length in turn, so that frames begin everywhere, also where they cross the end of the data."""
    tx, rx = new(directory, "producer", capacity=4096), new(directory, "consumer")
    for length in range(0, 4081, 7):
        expect(tx.send(length, 3, length), "sent")
        expect(rx.receive(count=1), [message(length, 3, length), "enough"])
    expect(tx.send(4081), "error TooLarge")
    tx.close()
    expect(rx.receive(), ["end Closed"])
    rx.close()


def test_one_of_each_role(directory):
    tx = new(directory, "producer")
    path = os.path.join(directory, "ring")
    expect(Play("producer", path).attached, "error Busy 4")
    expect(Play("consumer", path, capacity=8192).attached, "error InvalidArgument 3")
    expect(Play("consumer", os.path.join(directory, "absent")).attached, "error NotFound 1")
    tx.close()


def test_full_and_empty(directory):
    tx, rx = new(directory, "producer", capacity=4096), new(directory, "consumer")
    expect(rx.receive(0), ["end Empty"])
    expect(rx.receive(20), ["end TimedOut"])
    expect(tx.send(496, count=9), "error Full")
    expect(tx.send(496, timeout_ms=20), "error TimedOut")
    expect(rx.receive(0), [message(496, seq=s) for s in range(8)] + ["end Empty"])
    expect(tx.send(4080), "sent")
    expect(rx.receive(0), [message(4080), "end Empty"])
    tx.close()
    rx.close()


def test_a_long_stream_through_a_small_ring(directory):
    """10,000 messages through a ring for eight of them: both sides wait again and again."""
    tx, rx = new(directory, "producer", capacity=4096), new(directory, "consumer")
    tx.tell(f"put 1 0 496 {LONG * 1000 * MS} 10000")
    heard = rx.receive(count=10000)
    expect(tx.hear(), "sent")
    expect(heard, [message(496, 1, seq=s) for s in range(10000)] + ["enough"])
    tx.close()
    rx.close()


def test_sleepers_are_woken(directory):
    """Both sides in turn sleep for 10 ms until the other acts. Without a wake-up each sleep would last 100 ms."""
    tx, rx = new(directory, "producer", capacity=4096), new(directory, "consumer")
    took = {"receiver": [], "sender": []}
    for _ in range(21):
        rx.tell(f"recv {LONG * 1000 * MS} 1")
        time.sleep(0.01)
        began = time.monotonic()
        expect(tx.send(4000), "sent")
        expect(rx.rest(), [message(4000), "enough"])
        took["receiver"].append(time.monotonic() - began)
        expect(tx.send(4000), "sent")
        tx.tell(f"put 0 0 4000 {LONG * 1000 * MS} 1")
        time.sleep(0.01)
        began = time.monotonic()
        expect(rx.receive(count=1), [message(4000), "enough"])
        expect(tx.hear(), "sent")
        took["sender"].append(time.monotonic() - began)
        expect(rx.receive(count=1), [message(4000), "enough"])
    for side, times in took.items():
        assert sorted(times)[10] < 0.05, f"the {side}: {times}"
    tx.close()
    rx.close()


def test_a_close_is_delivered_once(directory):
    tx = new(directory, "producer")
    tx.send(3)
    tx.close()
    first = new(directory, "consumer")
    expect(first.receive(), [message(3), "end Closed"])
    second = new(directory, "producer")  # a successor, and no end of its own
    expect(first.receive(0), ["end Empty"])
    second.close()
    first.close()
    later = new(directory, "consumer")
    expect(later.receive(), ["end Closed"])
    later.close()
    expect(os.listdir(directory), [])


def test_killed_with_a_message_in_hand(directory):
    tx, rx = new(directory, "producer"), new(directory, "consumer")
    tx.send(10, count=3)
    expect(rx.ask(f"hold {LONG * 1000 * MS} 1"), message(10))
    rx.kill()
    again = new(directory, "consumer")
    expect(again.attached.split()[1], "epoch=2")
    expect(again.receive(0), [message(10, seq=s) for s in range(3)] + ["end Empty"])
    again.tell(f"recv {LONG * 1000 * MS} 1")  # sleeps
    time.sleep(0.05)
    tx.kill()
    killed = time.monotonic()
    expect(again.rest(), ["end PeerDead"])
    assert time.monotonic() - killed < 5
    again.close()


def test_a_sender_that_waits_learns_of_a_death_and_of_a_close(directory):
    for end, wanted in [(Play.kill, "error PeerDead"), (Play.close, "error Closed")]:
        tx, rx = new(directory, "producer", capacity=4096), new(directory, "consumer")
        tx.tell(f"put 0 0 4080 {LONG * 1000 * MS} 2")
        time.sleep(0.05)
        end(rx)
        expect(tx.hear(), wanted)
        tx.close()
        os.remove(os.path.join(directory, "ring"))


def test_a_name_that_vanishes(directory):
    rx = new(directory, "consumer")
    rx.tell(f"recv {LONG * 1000 * MS} 1")
    time.sleep(0.05)
    os.remove(os.path.join(directory, "ring"))
    expect(rx.rest(), ["end Closed"])
    rx.close()


def test_names(directory):
    environment = dict(os.environ, RAMWAY_DIR=directory)
    for bad in [".hidden", "x.sock", "a name", "x" * 81, "ends/"]:
        said = subprocess.run([PROGRAM, "recv", bad], env=environment, capture_output=True, text=True, timeout=LONG)
        assert said.returncode == 1 and ("InvalidArgument" in said.stderr or "NotFound" in said.stderr), said
    expect(os.listdir(directory), [])


# Zig with Rust, by the two commands, in both roles.


LINES = "".join(f"line {i} {'x' * (i % 300)}\n" for i in range(20000))


def rust(*args, **options):
    return subprocess.Popen([RAMWAY, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="latin-1", **options)


def zig(*args, **options):
    return subprocess.Popen([PROGRAM, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="latin-1", **options)


def test_rust_sends_to_zig(directory):
    path = os.path.join(directory, "ring")
    rx = zig("recv", path)
    tx = rust("send", "--quiet", "--lines", path)
    sent = concurrent.futures.ThreadPoolExecutor().submit(tx.communicate, LINES, LONG)
    received, said = rx.communicate(timeout=LONG)
    # A line is a message with its newline, and the Zig command adds one.
    expect((received.replace("\n\n", "\n") == LINES, rx.returncode, said), (True, 0, ""))
    sent.result()
    expect(tx.returncode, 0)
    expect(os.listdir(directory), [])


def test_zig_sends_to_rust(directory):
    path = os.path.join(directory, "ring")
    rx = rust("recv", "--quiet", path)
    tx = zig("send", path)
    sent = concurrent.futures.ThreadPoolExecutor().submit(tx.communicate, LINES, LONG)
    received, said = rx.communicate(timeout=LONG)
    expect((received == LINES.replace("\n", ""), rx.returncode, said), (True, 0, ""))
    sent.result()
    expect(tx.returncode, 0)
    expect(os.listdir(directory), [])


def test_rust_is_killed_while_zig_receives(directory):
    path = os.path.join(directory, "ring")
    rx, tx = zig("recv", path), rust("send", "--quiet", "--lines", path)
    tx.stdin.write("before the end\n")
    tx.stdin.flush()
    expect(rx.stdout.readline(), "before the end\n")
    tx.kill()
    _, said = rx.communicate(timeout=LONG)
    assert rx.returncode == 4 and "PeerDead" in said, (rx.returncode, said)


def test_zig_is_killed_while_rust_receives(directory):
    path = os.path.join(directory, "ring")
    rx, tx = rust("recv", "--quiet", path), zig("send", path)
    tx.stdin.write("before the end\n")
    tx.stdin.flush()
    expect(rx.stdout.read(14), "before the end")
    tx.kill()
    _, said = rx.communicate(timeout=LONG)
    assert rx.returncode != 0 and "died" in said, (rx.returncode, said)


def test_rust_is_killed_while_zig_sends(directory):
    path = os.path.join(directory, "ring")
    tx = new(directory, "producer", capacity=4096)
    rx = rust("recv", "--quiet", "--capacity", "4K", path)
    tx.send(100, timeout_ms=LONG * 1000)
    expect(len(rx.stdout.read(100)), 100)
    rx.send_signal(signal.SIGSTOP)
    tx.tell(f"put 0 0 4000 {LONG * 1000 * MS} 3")  # it has to wait
    time.sleep(0.05)
    rx.kill()
    expect(tx.hear(), "error PeerDead")
    # A successor in Rust goes on where the killed one stood.
    tx.close()
    rx = rust("recv", "--quiet", path)
    received, _ = rx.communicate(timeout=LONG)
    assert rx.returncode == 0 and len(received) % 4000 in (0, 100), len(received)


def test_zig_is_killed_while_rust_sends(directory):
    path = os.path.join(directory, "ring")
    rx = new(directory, "consumer", capacity=4096)
    tx = rust("send", "--quiet", "--frame", "1000", "--capacity", "4K", path)
    expect(tx.stdin.write("x" * 20000), 20000)
    tx.stdin.flush()
    expect(rx.ask(f"hold {LONG * 1000 * MS} 1").split()[3], "len=1000")
    rx.kill()
    _, said = tx.communicate(timeout=LONG)
    assert tx.returncode != 0 and "died" in said, (tx.returncode, said)


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    for segment in json.loads((ROOT / "format/vectors/segments.json").read_text())["segments"]:
        for reader in segment["readers"] if segment["kind"] == "ring" else []:
            if reader["as"] in WAIT:
                tests.append((f"vector {segment['name']}, {reader['as']}", lambda d, s=segment, r=reader: play_vector(d, s, r)))
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    def run(named):
        with tempfile.TemporaryDirectory(prefix="ramway-zig-", dir=shared) as directory:
            try:
                named[1](directory)
            except Exception as e:  # each test is counted
                return f"{named[0]}: {type(e).__name__}: {e}"

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        failures = [why for why in pool.map(run, tests) if why]
    for why in failures:
        print(why)
    print(f"{len(tests) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
