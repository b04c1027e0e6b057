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
    code = 1


class AlreadyExistsError(Error, FileExistsError):
    """The name is taken: by a live segment, by undelivered messages, or by something that is not Ramway's."""

    kind = "AlreadyExists"
    code = 2


class InvalidArgumentError(Error, ValueError):
    """An argument cannot be right; the text says which, and what was expected."""

    kind = "InvalidArgument"
    code = 3


class BusyError(Error, BlockingIOError):
    """The role, the slot or the handle is taken."""

    kind = "Busy"
    code = 4


class FullError(Error, BlockingIOError):
    """The ring has no room for this message now."""

    kind = "Full"
    code = 5


class EmptyError(Error, BlockingIOError):
    """The ring has no message now."""

    kind = "Empty"
    code = 6


class TooLargeError(Error, ValueError):
    """The message can never fit into this ring."""

    kind = "TooLarge"
    code = 7


class TimedOutError(Error, TimeoutError):
    """The time was up."""

    kind = "TimedOut"
    code = 8


class ClosedError(Error, BrokenPipeError, EOFError):
    """The peer closed, and everything that it had sent has been received."""

    kind = "Closed"
    code = 9


class DetachedError(Error, ValueError):
    """This handle is closed, or it belongs to the parent of a forked process."""

    kind = "Detached"
    code = 10


class PeerDeadError(Error, ConnectionResetError):
    """The peer's process died without closing, and everything that it had committed has been received."""

    kind = "PeerDead"
    code = 11


class CorruptError(Error, OSError):
    """The shared memory holds what no correct peer writes. The handle stays dead."""

    kind = "Corrupt"
    code = 12


class AbiMismatchError(Error, OSError):
    """The segment is not Ramway's, or of a version, byte order or page size that this side cannot use."""

    kind = "AbiMismatch"
    code = 13


class PermissionDeniedError(Error, PermissionError):
    """The operating system refuses access."""

    kind = "PermissionDenied"
    code = 14


class NoSpaceError(Error, OSError):
    """There is not enough memory or file system space."""

    kind = "NoSpace"
    code = 15


class WaitInterruptedError(Error, InterruptedError):
    """A signal arrived and its handler asked to stop waiting."""

    kind = "Interrupted"
    code = 16


class UnsupportedError(Error, OSError):
    """This kernel, file system or setting cannot do what was asked."""

    kind = "Unsupported"
    code = 17


class OsError(Error, OSError):
    """Any other error of the operating system."""

    kind = "Os"
    code = 18


# By their codes, from 1 on.
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
)

# Tracebacks name them as programs do.
for _kind in (Error, *KINDS):
    _kind.__module__ = "ramway"
