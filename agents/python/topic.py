"""`open topic=`, and what differs between a ring's and a topic's messages."""

from typing import Literal, cast

import ramway
from line import Line, RefusedError
from look import OPEN_TIMEOUT


def longest(end: ramway.Sender | ramway.Receiver) -> int:
    """Bytes of the longest message."""
    if isinstance(end, ramway.Publisher | ramway.Subscriber):
        return min(end.capacity // 2 - 32, 2**31 - 33)
    return min(end.capacity - 16, 2**31 - 17)


def open_side(
    name: str, role: str, wait: Literal["spin", "hybrid", "block"], line: Line
) -> tuple[ramway.Publisher | None, ramway.Subscriber | None]:
    """The publisher, or the subscriber."""
    eject_after, timeout = line.maybe("eject_after"), line.number("timeout", int(1000 * OPEN_TIMEOUT)) / 1000
    if line.yes("create"):
        capacity, align = line.number("capacity", 65536), line.number("align", 32)
        topic = ramway.Topic.create(
            name, capacity=capacity, align=align, may_eject=eject_after is not None, timeout=timeout
        )
    else:
        topic = ramway.Topic.open(name, timeout=timeout)
    if role == "consumer":
        policy, label, durable = line.text("policy", "reliable"), line.text("label") or None, line.yes("durable")
        place, _, number = line.text("from").partition(":")
        if policy not in ("reliable", "lossy", "latest") or place not in ("", "oldest", "now", "history", "after"):
            raise RefusedError(f"policy={policy} from={place}")
        if eject_after is not None:
            raise RefusedError("eject_after is a producer's")
        line.end()
        subscriber = topic.subscriber(
            cast(Literal["reliable", "lossy", "latest"], policy),
            label=label,
            durable=durable,
            start=cast(Literal["oldest", "now"], place) if place in ("oldest", "now") else None,
            history=int(number) if place == "history" else None,
            after_seq=int(number) if place == "after" else None,
            wait=wait,
        )
        return None, subscriber
    wait_for = line.maybe("wait_for")
    line.end()
    publisher = topic.publisher(eject_after=None if eject_after is None else eject_after / 1000, wait=wait)
    if wait_for is not None:
        publisher.wait_for_subscribers(wait_for, OPEN_TIMEOUT)
    return publisher, None
