"""How calls fail."""

from . import _errors
from ._errors import KINDS, Error

__all__ = ["CallError", "Fault"]


class CallError(Error):
    """A call that has no reply.

    Either the server ended it: then ``status`` says how, by its name in every language ("Application",
    "NoSuchMethod", "TimedOut", "Cancelled", "Overloaded", "ReplyTooLarge", "Draining", "HandlerFailed"). Or this side
    did, or the connection is over: then ``status`` is None, and the exception is also of the class of its ``kind``:
    TimedOutError by the call's own time limit, TooLargeError for a request that the ring cannot hold or a reply
    beyond ``max_buffered``, ClosedError, PeerDeadError, CorruptError, DetachedError, InvalidArgumentError. One with
    the status "TimedOut" is a TimedOutError too.

    ``code`` is the application's number with the status "Application", else the number of the kind, 0 without one.
    ``text`` is what the server wrote, with "Application" and "HandlerFailed"; else what went wrong, or nothing.
    """

    #: How the server ended the call; None if it did not.
    status: str | None = None
    #: What went wrong.
    text: str = ""
    #: Whether the server may have begun the call. If not, it can be made again without being made twice.
    may_have_run: bool = False


class Fault(Exception):
    """What a handler raises to end its call with an error of the application: a number and a text.

    The caller gets both, as a CallError with the status "Application".
    """

    def __init__(self, code: int, text: str = "") -> None:
        if not 0 <= code < 1 << 32:
            raise _errors.InvalidArgumentError(f"code={code}: expected an integer from 0 to 4294967295")
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return f"error {self.code}: {self.text}"


def _of_kind(kind: type[Error]) -> type[CallError]:
    name = f"Call{kind.__name__}"
    return type(name, (CallError, kind), {"__doc__": kind.__doc__, "__module__": __name__, "__qualname__": name})


# In the order of their codes, from 1 on. Also by their names, for pickles.
_OF_KINDS = [_of_kind(kind) for kind in KINDS]
globals().update((kind.__name__, kind) for kind in _OF_KINDS)
_TIMED_OUT = _OF_KINDS[KINDS.index(_errors.TimedOutError)]

for _class in (CallError, Fault):
    _class.__module__ = "ramway.rpc"


def call_error(status: str | None, kind: int | None, code: int, text: str, shown: str, may_have_run: bool) -> CallError:
    """For the native module."""
    if kind is not None:
        error = _OF_KINDS[kind - 1](shown)
    else:
        error = (_TIMED_OUT if status == "TimedOut" else CallError)(shown)
        vars(error)["code"] = code
    error.status, error.text, error.may_have_run = status, text, may_have_run
    return error
