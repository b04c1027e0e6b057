"""The recorder of examples/src/bin/robot.rs, in Python: a durable subscriber that goes on where it was killed.

robot controller pictures & robot camera pictures 1000    # the Rust half, in one terminal
python robot_recorder.py pictures FILE                    # in the other; killed and started again, it misses nothing
"""

import os
import sys

import ramway

# A grey picture of 64 × 64 pixels. What is written for each: its number as 8 bytes (little-endian), then the pixels.
PIXELS = 64 * 64
RECORD = 8 + PIXELS


def open_record(path: str) -> tuple[int, int]:
    """Opens the file at its end; gives its descriptor and the number of the last picture in it, 0 if there is none.

    Of a recorder that was killed there may be a part of a picture, which comes again.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    whole = os.fstat(file).st_size // RECORD * RECORD
    os.ftruncate(file, whole)
    number = int.from_bytes(os.pread(file, 8, whole - RECORD), "little") if whole else 0
    os.lseek(file, 0, os.SEEK_END)
    return file, number


def write_all(file: int, data: bytes) -> None:
    """Writes all of it. Not buffered: a picture is released only when the kernel has it."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def record(name: str, path: str) -> None:
    """Writes every picture down, also those that come while no recorder runs."""
    file, written = open_record(path)
    # A killed predecessor holds its label until the kernel has closed its files.
    topic = ramway.Topic.open_or_create(name, capacity=1 << 20, timeout=10)
    with topic.subscriber(label="recorder", durable=True) as camera:
        ended = False
        while not ended:
            try:
                for picture in camera:
                    with picture:  # released at the end of this block, after it was written
                        # One that was killed between the write and the release is given this picture again.
                        if picture.seq > written:
                            write_all(file, picture.seq.to_bytes(8, "little") + picture.tobytes())
                            written = picture.seq
                ended = True  # the camera has closed
            except ramway.PeerDeadError:
                # A camera that was killed is started again: the next one goes on in the same topic.
                camera.wait_for_peer()
    os.close(file)
    print(f"{written} pictures are in {path}")


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit("usage: robot_recorder.py TOPIC FILE")
    record(*sys.argv[1:])


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
