"""What is in the Ramway directory, and removing what is left there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

from . import _ramway
from ._errors import Error
from ._topic import SubscriberInfo

__all__ = ["Cleaned", "Segment", "clean", "ls", "unlink"]


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A file of the Ramway directory at one moment: what it holds, or the ``error`` for what is no segment."""

    #: Its name there.
    name: str
    #: Where it is.
    path: str
    kind: Literal["ring", "region", "bus", "listener", "topic"] | None = None
    #: A process uses it.
    in_use: bool = False
    #: The name stays when its last user goes.
    persistent: bool = False
    #: Left behind by processes that died, or by another boot.
    stale: bool = False
    #: Bytes of the whole file.
    size: int = 0
    #: Bytes of a ring's or topic's data, or of a region.
    capacity: int | None = None
    #: What a ring's or topic's payloads are aligned to.
    align: int | None = None
    #: Bytes of a ring that are not released yet, frame headers included.
    used: int | None = None
    #: Messages of a ring that are not released yet; None if it moves too fast to count them, or is damaged.
    undelivered: int | None = None
    #: The number of a topic's newest message: 0 before the first, and if it moves too fast to read one.
    seq: int | None = None
    #: A topic's subscribers that have a slot: every reliable one, durable ones that are away too, and of the others
    #: those that could take one. For how long one has blocked the publisher is not known here (``blocks_for`` is None).
    subscribers: list[SubscriberInfo] | None = None
    #: A ring has a sender, a topic a publisher; a listener listens.
    producer_held: bool = False
    #: A ring has a receiver.
    consumer_held: bool = False
    #: Why nothing is known of it.
    error: Error | None = None


@dataclass(frozen=True, kw_only=True)
class Cleaned:
    """What `clean` made of a file: ``removed`` (with ``dry_run``: it would have been), else why it was ``kept``, or the
    ``error``."""

    name: str
    removed: bool
    kept: str | None = None
    error: Error | None = None


def ls(directory: str | os.PathLike[str] | None = None) -> list[Segment]:
    """The segments of a directory, by name; without one of ``RAMWAY_DIR`` or ``/dev/shm/ramway-<uid>``.

    Disturbs nobody; what it says of a segment in use can be old by then. A directory that does not exist is empty.
    """
    return [Segment(**record) for record in _ramway._ls(directory)]


def unlink(name: str | os.PathLike[str]) -> None:
    """Removes a segment that nobody uses, also a persistent one, also with undelivered messages.

    Raises BusyError if a process uses it, NotFoundError, and what is no segment of Ramway's stays: AbiMismatchError,
    CorruptError, InvalidArgumentError.
    """
    _ramway._unlink(name)


def clean(
    directory: str | os.PathLike[str] | None = None, *, undelivered: bool = False, dry_run: bool = False
) -> list[Cleaned]:
    """Removes the segments of a directory that nobody uses and that are empty; with ``undelivered`` also those that
    hold undelivered messages or are persistent. With ``dry_run`` it removes nothing and says what it would."""
    outcomes: list[tuple[str, bool, str | None, Any]] = _ramway._clean(directory, undelivered, dry_run)
    return [Cleaned(name=name, removed=removed, kept=kept, error=error) for name, removed, kept, error in outcomes]
