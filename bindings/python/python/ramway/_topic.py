"""What a topic's ends say of each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Lag", "SubscriberInfo"]


@dataclass(frozen=True)
class Lag:
    """How far a subscriber is behind."""

    #: Bytes that are published and not released, frame headers and padding included.
    bytes: int
    #: Messages that are published and not received.
    messages: int


@dataclass(frozen=True, kw_only=True)
class SubscriberInfo:
    """A subscriber, as a publisher or ``ls`` sees it at one moment."""

    #: Its slot, from 0 on.
    slot: int
    #: How it reads.
    policy: Literal["reliable", "lossy", "latest"]
    #: Its label; None without one.
    label: str | None
    #: Its place is kept when it goes.
    durable: bool
    #: Its process lives and has it open.
    alive: bool
    #: The publisher has ejected it, and it has not begun anew.
    ejected: bool
    #: How often the slot was taken.
    epoch: int
    #: How far a reliable one is behind; None under another policy, which does not say, and where it cannot be read
    #: just now.
    lag: Lag | None
    #: Messages that it has lost.
    lost: int
    #: For how many seconds it has kept the publisher from going on without reading anything; None if it does not.
    blocks_for: float | None
