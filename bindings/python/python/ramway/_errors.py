"""The errors of Ramway: one class a kind, each also the built-in exception that Python programs catch."""

from typing import ClassVar


class Error(Exception):
    """What every call of Ramway raises.

    ``kind`` is the name and ``code`` the number that the kind has in every language; ``errno`` is the operating
    system's number where it had a part in it, else ``None``.
    """

    kind: ClassVar[str] = ""
    code: ClassVar[int] = 0
    errno: int | None = None


class NotFoundError(Error, FileNotFoundError):
    """Nothing has this name."""

    kind = "NotFound"


class AlreadyExistsError(Error, FileExistsError):
    """The name is taken: by a live segment, by undelivered messages, or by something that is not Ramway's."""

    kind = "AlreadyExists"


class InvalidArgumentError(Error, ValueError):
    """An argument cannot be right; the text says which, and what was expected."""

    kind = "InvalidArgument"


class BusyError(Error, BlockingIOError):
    """The role, the slot or the handle is taken."""

    kind = "Busy"


class FullError(Error, BlockingIOError):
    """The ring has no room for this message now."""

    kind = "Full"


class EmptyError(Error, BlockingIOError):
    """The ring has no message now."""

    kind = "Empty"


class TooLargeError(Error, ValueError):
    """The message can never fit into this ring."""

    kind = "TooLarge"


class TimedOutError(Error, TimeoutError):
    """The time was up."""

    kind = "TimedOut"


class ClosedError(Error, BrokenPipeError, EOFError):
    """The peer closed, and everything that it had sent has been received."""

    kind = "Closed"


class DetachedError(Error, ValueError):
    """This handle is closed, or it belongs to the parent of a forked process."""

    kind = "Detached"


class PeerDeadError(Error, ConnectionResetError):
    """The peer's process died without closing, and everything that it had committed has been received."""

    kind = "PeerDead"


class CorruptError(Error, OSError):
    """The shared memory holds what no correct peer writes. The handle stays dead."""

    kind = "Corrupt"


class AbiMismatchError(Error, OSError):
    """The segment is not Ramway's, or of a version, byte order or page size that this side cannot use."""

    kind = "AbiMismatch"


class PermissionDeniedError(Error, PermissionError):
    """The operating system refuses access."""

    kind = "PermissionDenied"


class NoSpaceError(Error, OSError):
    """There is not enough memory or file system space."""

    kind = "NoSpace"


class WaitInterruptedError(Error, InterruptedError):
    """A signal arrived and its handler asked to stop waiting."""

    kind = "Interrupted"


class UnsupportedError(Error, OSError):
    """This kernel, file system or setting cannot do what was asked."""

    kind = "Unsupported"


class OsError(Error, OSError):
    """Any other error of the operating system."""

    kind = "Os"


class LaggedError(Error):
    """The publisher of a topic ejected this subscriber, which was too slow.

    ``lost`` is the number of messages that this subscriber has lost.
    """

    kind = "Lagged"
    lost: int = 0


# In the order of their codes, from 1 on.
KINDS: tuple[type[Error], ...] = (
    NotFoundError,
    AlreadyExistsError,
    InvalidArgumentError,
    BusyError,
    FullError,
    EmptyError,
    TooLargeError,
    TimedOutError,
    ClosedError,
    DetachedError,
    PeerDeadError,
    CorruptError,
    AbiMismatchError,
    PermissionDeniedError,
    NoSpaceError,
    WaitInterruptedError,
    UnsupportedError,
    OsError,
    LaggedError,
)

# Tracebacks name the errors as programs do.
Error.__module__ = "ramway"
for _code, _class in enumerate(KINDS, 1):
    _class.code = _code
    _class.__module__ = "ramway"
