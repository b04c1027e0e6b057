"""1080p video from one process to another: RGB frames as arrays of shape (1080, 1920, 3), filtered where they lie.

    python video.py produce cam             # FFmpeg's moving test picture, or --clip FILE, at 30 frames a second
    python video.py consume cam             # finds what moves

A camera does not wait: a frame for which the ring has no room is dropped and counted, and its number is missing in the
tags. The consumer counts those gaps, and the frames that came later than one frame's time after the picture was due.
"""

import argparse
import itertools
import time
from collections.abc import Iterator

import av
import cv2
import numpy as np
import ramway

HEIGHT, WIDTH = 1080, 1920
SHUTDOWN = 1
FRAME_BYTES = HEIGHT * WIDTH * 3


def pictures(clip: str | None) -> Iterator[av.VideoFrame]:
    """Decoded frames in YUV 4:2:0, forever."""
    while clip is not None:
        with av.open(clip) as container:
            for frame in container.decode(video=0):
                yield frame.reformat(WIDTH, HEIGHT, "yuv420p")
    graph = av.filter.Graph()
    source = graph.add("testsrc2", f"size={WIDTH}x{HEIGHT}:rate=30")
    planes = graph.add("format", "pix_fmts=yuv420p")
    sink = graph.add("buffersink")
    graph.link_nodes(source, planes, sink).configure()
    while True:
        yield graph.vpull()


def produce(arguments: argparse.Namespace) -> None:
    # Room for some eight frames: that far the consumer may be behind.
    ring = ramway.Ring.open_or_create(arguments.ring, capacity=8 * FRAME_BYTES, timeout=5)
    dropped = 0
    with ring.sender() as tx:
        start = time.monotonic_ns()
        for number, picture in enumerate(itertools.islice(pictures(arguments.clip), arguments.frames)):
            due = start + int(number * 1e9 / arguments.rate) if arguments.rate else time.monotonic_ns()
            time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
            try:
                # The tag: the frame's number, and when it was due, in microseconds.
                with tx.reserve_tensor((HEIGHT, WIDTH, 3), "uint8", number << 48 | due // 1000, timeout=0) as slot:
                    cv2.cvtColor(picture.to_ndarray(), cv2.COLOR_YUV2RGB_I420, dst=slot.numpy())
            except ramway.TimedOutError:
                dropped += 1
        seconds = (time.monotonic_ns() - start) / 1e9
        tx.send(b"", SHUTDOWN, arguments.frames)
    sent = arguments.frames - dropped
    print(f"sent {sent} frames in {seconds:.2f} s, {sent / seconds:.0f} a second, dropped {dropped}")


def consume(arguments: argparse.Namespace) -> None:
    ring = ramway.Ring.open_or_create(arguments.ring, capacity=8 * FRAME_BYTES, timeout=5)
    background = cv2.createBackgroundSubtractorMOG2(history=30, detectShadows=False)
    frames = gaps = late = expected = moving = 0
    total, start, view_ns = None, 0, 0
    with ring.receiver() as rx:
        for message in rx:
            if message.type_id == SHUTDOWN:
                total = message.tag
                gaps += total - expected
                continue
            number, due = message.tag >> 48, message.tag & (1 << 48) - 1
            gaps, expected = gaps + number - expected, number + 1
            late += time.monotonic_ns() // 1000 - due > 1e6 / (arguments.rate or 30)
            began = time.perf_counter_ns()
            frame = message.tensor().numpy()
            view_ns += time.perf_counter_ns() - began
            assert frame.shape == (HEIGHT, WIDTH, 3) and frame.dtype == np.uint8 and not frame.flags.owndata
            # A real filter, which reads the frame in the ring: smoothed at a quarter of the size, then what is not
            # background.
            small = cv2.resize(frame, (WIDTH // 4, HEIGHT // 4), interpolation=cv2.INTER_AREA)
            mask = background.apply(cv2.GaussianBlur(small, (5, 5), 0))
            moving += cv2.countNonZero(mask)
            start = start or time.monotonic_ns()
            frames += 1
    seconds = (time.monotonic_ns() - start) / 1e9
    if total is None:
        raise SystemExit("the producer did not say that it was done")
    share = 100 * moving / max(1, frames * WIDTH * HEIGHT // 16)
    print(f"received {frames} frames in {seconds:.2f} s: {frames / seconds:.0f} a second, {share:.1f} % of them moves")
    print(f"{view_ns / max(1, frames) / 1e3:.1f} us from message to array")
    print(f"of {total} frames {gaps} were dropped and {late} came late")


def main() -> None:
    parser = argparse.ArgumentParser(description="1080p video through a ring.")
    parser.add_argument("role", choices=["produce", "consume"])
    parser.add_argument("ring", help="name of the ring")
    parser.add_argument("--frames", type=int, default=300, help="produce: how many")
    parser.add_argument("--rate", type=float, default=30, help="frames a second; 0 = as fast as they come")
    parser.add_argument("--clip", help="produce: a video file instead of FFmpeg's test picture")
    arguments = parser.parse_args()
    (produce if arguments.role == "produce" else consume)(arguments)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
