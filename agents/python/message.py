"""What message number `seq` is, and whether it arrived as such."""

import zlib

import ramway
from line import RefusedError


class BadMessage(Exception):
    """A message did not arrive as it was sent."""

    def __init__(self, seq: int, text: str) -> None:
        super().__init__(text)
        self.seq = seq


class Messages:
    """Every message of a ring whose longest has `longest` bytes."""

    def __init__(self, sizes: str, longest: int) -> None:
        if sizes not in ("mixed", "ramp") and not sizes.isdecimal():
            raise RefusedError(f"sizes={sizes}")
        self.ramp = sizes == "ramp"
        self.fixed = int(sizes) if sizes.isdecimal() else None
        self.longest = longest
        length = max(longest, self.fixed or 0) + 256
        # Every payload is a piece of it.
        self.pattern = memoryview((bytes(range(256)) * (length // 256 + 1))[:length])

    def length(self, seq: int) -> int:
        if self.fixed is not None:
            return self.fixed
        if self.ramp:
            return seq % (self.longest + 1)
        if seq % 1000 == 999:
            return self.longest
        if seq % 100 == 0:
            return 0
        x = seq * 2654435761 & 0xFFFFFFFF
        return x % (self.longest + 1) if seq % 50 == 1 else x % 257

    def make(self, seq: int) -> tuple[int, int, memoryview]:
        """Type id, tag and payload of message number `seq`."""
        start = seq % 256
        data = self.pattern[start : start + self.length(seq)]
        return seq % 60000, zlib.crc32(data) << 32 | seq & 0xFFFFFFFF, data

    def check(self, seq: int, message: ramway.Message, payload: ramway.Message | bytes) -> None:
        type_id, tag, data = self.make(seq)
        if len(payload) != len(data):
            raise BadMessage(seq, f"length {len(payload)} instead of {len(data)}")
        if (message.type_id, message.tag) != (type_id, tag):
            raise BadMessage(seq, f"type id {message.type_id}, tag {message.tag:#x} instead of {type_id}, {tag:#x}")
        if zlib.crc32(payload) != tag >> 32 or payload != data:
            raise BadMessage(seq, "the bytes")
