"""What an inbox and an outbox say of those at the other end."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["Left", "Peer", "Undelivered"]


@dataclass(frozen=True)
class Peer:
    """The other side of one connection of an inbox or an outbox."""

    #: Counts up from 1 with each that connects.
    id: int
    #: Its effective user.
    uid: int
    #: Its process, as the kernel said when it connected; None if it has no number in this PID namespace.
    pid: int | None


class Left(enum.Enum):
    """How a producer of an inbox went: what comes after its last message."""

    #: It closed.
    CLOSED = "closed"
    #: Its process died, or it gave its end up after an exception.
    DIED = "died"
    #: It wrote what no correct producer writes; its other messages are not read.
    CORRUPT = "corrupt"


@dataclass(frozen=True, kw_only=True)
class Undelivered:
    """A message of an outbox that no worker has done."""

    #: As it was sent with.
    type_id: int
    #: As it was sent with.
    tag: int
    #: To how many workers it was given.
    deliveries: int
    #: The payload.
    data: bytes
