"""The working half of server.mjs: similarity search with NumPy and thumbnails with OpenCV, asked for over a bus.

    python worker.py BUS --vectors vectors.npy

The server starts it. It ends when the server closes the bus, and when the server dies.
"""

import argparse
import os
import signal

# Both are looked at when the libraries are imported. A small file can say that it is a huge picture; and the processors
# are divided among the workers, not among the threads of each.
os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(1 << 25))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import cv2
import numpy as np
import ramway

# typeIds, as in workers.mjs. A reply has the tag of its request, and its typeId or REFUSED.
SIMILAR, THUMBNAIL, CANCEL, REFUSED = 1, 2, 3, 4
# So many requests are taken at once: the searches among them become one product of two matrices.
AT_ONCE = 32
MATCH = np.dtype([("id", "<u4"), ("score", "<f4")])


class Refusal(Exception):
    """What is wrong with a request."""


def normalised(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo("float32").tiny)


class Worker:
    def __init__(self, bus: ramway.Bus, vectors: np.ndarray) -> None:
        self.bus = bus
        self.vectors = normalised(vectors.astype("float32"))
        self.answered = self.cancelled = 0

    def run(self) -> None:
        while True:
            try:
                # Views of the ring: nothing is copied, and each place is given back when its message is dropped.
                taken = self.bus.recv_batch(AT_ONCE)
            except (ramway.ClosedError, ramway.PeerDeadError):
                return
            given_up = {message.tag for message in taken if message.type_id == CANCEL}
            asked = [message for message in taken if message.type_id != CANCEL and message.tag not in given_up]
            self.cancelled += sum(message.type_id != CANCEL for message in taken) - len(asked)
            del taken
            try:
                self.answer(asked)
            except (ramway.ClosedError, ramway.PeerDeadError):
                return

    def answer(self, asked: list[ramway.Message]) -> None:
        searches = []
        for message in asked:
            try:
                if message.type_id == SIMILAR:
                    searches.append((message.tag, *self.query(message)))
                elif message.type_id == THUMBNAIL:
                    self.reply(THUMBNAIL, message.tag, thumbnail(message))
                else:
                    raise Refusal(f"there is no work of kind {message.type_id}")
            except Refusal as refusal:
                self.reply(REFUSED, message.tag, str(refusal).encode())
        if searches:
            tags, counts, queries = zip(*searches, strict=True)
            for tag, matches in zip(tags, self.nearest(np.stack(queries), counts), strict=True):
                self.reply(SIMILAR, tag, matches)

    def reply(self, type_id: int, tag: int, data: object) -> None:
        self.bus.send(data, type_id, tag)
        self.answered += 1

    def query(self, message: ramway.Message) -> tuple[int, np.ndarray]:
        """How many matches are wanted, and the vector: a u32, and float32s that stay where they are."""
        width = self.vectors.shape[1]
        if len(message) != 4 + 4 * width:
            raise Refusal(f"a vector has {width} elements, not {(len(message) - 4) // 4}")
        return head(message), np.frombuffer(message, "<f4", offset=4)

    def nearest(self, queries: np.ndarray, counts: tuple[int, ...]) -> list[np.ndarray]:
        """The best matches of each query by cosine, best first."""
        scores = normalised(queries) @ self.vectors.T
        most = min(max(counts), scores.shape[1])
        best = np.argpartition(scores, -most, axis=1)[:, -most:]
        matches = np.empty(best.shape, MATCH)
        matches["id"], matches["score"] = best, np.take_along_axis(scores, best, axis=1)
        order = np.argsort(-matches["score"], axis=1)
        matches = np.take_along_axis(matches, order, axis=1)
        return [row[:count] for row, count in zip(matches, counts, strict=True)]


def head(message: ramway.Message) -> int:
    """The u32 that a request begins with."""
    return int.from_bytes(message[:4], "little")


def thumbnail(message: ramway.Message) -> np.ndarray:
    """A PNG of the width that a u32 says, from the picture (PNG, JPEG, WebP, …) behind it."""
    try:
        picture = cv2.imdecode(message.numpy()[4:], cv2.IMREAD_COLOR)
    except cv2.error:
        picture = None
    if picture is None:
        raise Refusal("this is not a picture")
    height, width = picture.shape[:2]
    wanted = min(head(message), width)
    small = cv2.resize(picture, (wanted, max(1, round(height * wanted / width))), interpolation=cv2.INTER_AREA)
    return cv2.imencode(".png", small)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Searches and makes thumbnails for server.mjs.")
    parser.add_argument("bus", help="name of the server's bus")
    parser.add_argument("--vectors", required=True, help="a .npy file: the rows that are searched")
    arguments = parser.parse_args()
    # Ctrl-C and a service manager's SIGTERM go to the whole group of processes. The server finishes what was asked and
    # then closes the bus; that is the end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    cv2.setNumThreads(1)
    with ramway.Bus.connect(arguments.bus, timeout=30) as bus:
        worker = Worker(bus, np.load(arguments.vectors))
        worker.run()
    print(f"worker: {worker.answered} answered, {worker.cancelled} given up before they were begun")


if __name__ == "__main__":
    main()
