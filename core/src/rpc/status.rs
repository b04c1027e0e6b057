//! How calls end.

use std::fmt;

use crate::facts::{
    RPC_APPLICATION, RPC_CANCELLED, RPC_DRAINING, RPC_HANDLER_FAILED, RPC_NO_SUCH_METHOD, RPC_OK, RPC_OVERLOADED,
    RPC_REPLY_TOO_LARGE, RPC_TIMED_OUT,
};
use crate::{Error, ErrorKind};

/// How a server says that a call has ended. The numbers are part of the format (`docs/ABI.md`, section 20).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum Status {
    /// The call succeeded.
    Ok = RPC_OK,
    /// The handler replied with an error of its own: a number and a text.
    Application = RPC_APPLICATION,
    /// The server has no such method. The call was not run.
    NoSuchMethod = RPC_NO_SUCH_METHOD,
    /// The call's time was over before it was begun. It was not run.
    TimedOut = RPC_TIMED_OUT,
    /// The call was cancelled.
    Cancelled = RPC_CANCELLED,
    /// A limit of the server was reached. The call was not run.
    Overloaded = RPC_OVERLOADED,
    /// The call was run, but its reply is longer than the ring or than the server's limit of bytes.
    ReplyTooLarge = RPC_REPLY_TOO_LARGE,
    /// The server is shutting down. The call was not run.
    Draining = RPC_DRAINING,
    /// The handler failed in a way that it did not mean to: it panicked.
    HandlerFailed = RPC_HANDLER_FAILED,
}

impl Status {
    /// The status with this number, if there is one.
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            RPC_OK => Self::Ok,
            RPC_APPLICATION => Self::Application,
            RPC_NO_SUCH_METHOD => Self::NoSuchMethod,
            RPC_TIMED_OUT => Self::TimedOut,
            RPC_CANCELLED => Self::Cancelled,
            RPC_OVERLOADED => Self::Overloaded,
            RPC_REPLY_TOO_LARGE => Self::ReplyTooLarge,
            RPC_DRAINING => Self::Draining,
            RPC_HANDLER_FAILED => Self::HandlerFailed,
            _ => return None,
        })
    }

    /// The name as `docs/ABI.md` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "Ok",
            Self::Application => "Application",
            Self::NoSuchMethod => "NoSuchMethod",
            Self::TimedOut => "TimedOut",
            Self::Cancelled => "Cancelled",
            Self::Overloaded => "Overloaded",
            Self::ReplyTooLarge => "ReplyTooLarge",
            Self::Draining => "Draining",
            Self::HandlerFailed => "HandlerFailed",
        }
    }

    /// Whether a server that says this has begun the call.
    pub const fn was_run(self) -> bool {
        !matches!(self, Self::NoSuchMethod | Self::TimedOut | Self::Overloaded | Self::Draining)
    }
}

/// Why a call has no reply.
///
/// It is one of two: the server ended the call, which [`status`](Self::status) says, or this side did or the connection is over,
/// which [`kind`](Self::kind) says: `TimedOut` by the call's own time limit, `TooLarge` for a request that the ring cannot
/// hold or a reply beyond `max_buffered`, `Closed`, `PeerDead`, `Corrupt`, `Interrupted`, `Detached`, `InvalidArgument`.
#[derive(Debug)]
pub struct CallError {
    cause: Cause,
    may_have_run: bool,
}

#[derive(Debug)]
enum Cause {
    /// Never `Ok`.
    Status {
        status: Status,
        code: u32,
        text: Box<str>,
    },
    Error(Error),
}

/// What calls return.
pub type CallResult<T> = std::result::Result<T, CallError>;

impl CallError {
    /// What a final REPLY says.
    pub(crate) fn of_status(status: Status, code: u32, text: &str) -> Self {
        Self { cause: Cause::Status { status, code, text: text.into() }, may_have_run: status.was_run() }
    }

    /// What this side says.
    pub(crate) fn of_error(error: Error, may_have_run: bool) -> Self {
        Self { cause: Cause::Error(error), may_have_run }
    }

    /// What the server said; `None` if this side ended the call or the connection is over.
    pub fn status(&self) -> Option<Status> {
        match &self.cause {
            Cause::Status { status, .. } => Some(*status),
            Cause::Error(_) => None,
        }
    }

    /// Why this side ended the call; `None` if the server did.
    pub fn kind(&self) -> Option<ErrorKind> {
        match &self.cause {
            Cause::Status { .. } => None,
            Cause::Error(error) => Some(error.kind()),
        }
    }

    /// The application's number, with [`Status::Application`]; else 0.
    pub fn code(&self) -> u32 {
        match &self.cause {
            Cause::Status { code, .. } => *code,
            Cause::Error(_) => 0,
        }
    }

    /// What the server wrote, with [`Status::Application`] and [`Status::HandlerFailed`]; else what went wrong, or nothing.
    pub fn text(&self) -> String {
        match &self.cause {
            Cause::Status { text, .. } => text.to_string(),
            Cause::Error(error) => error.to_string(),
        }
    }

    /// Whether the server may have begun the call. If not, it can be made again without being made twice.
    pub fn may_have_run(&self) -> bool {
        self.may_have_run
    }

    /// Whether the time limit ended it, on either side.
    pub fn is_timed_out(&self) -> bool {
        self.status() == Some(Status::TimedOut) || self.kind() == Some(ErrorKind::TimedOut)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Error(error) => error.fmt(f),
            Cause::Status { status: Status::Application, code, text } => {
                write!(f, "the server replied with error {code}: {text}")
            }
            Cause::Status { status, text, .. } => {
                f.write_str(match status {
                    Status::NoSuchMethod => "the server has no such method",
                    Status::TimedOut => "the call's time was over before the server began it",
                    Status::Cancelled => "the call was cancelled",
                    Status::Overloaded => {
                        "a limit of the server is reached (calls in flight, bytes or its queue); try again later"
                    }
                    Status::ReplyTooLarge => {
                        "the reply is longer than the server's ring or its limit of bytes: give it more `capacity`"
                    }
                    Status::Draining => "the server is shutting down",
                    _ => "the handler failed",
                })?;
                if text.is_empty() { Ok(()) } else { write!(f, ": {text}") }
            }
        }
    }
}

impl std::error::Error for CallError {}

impl From<CallError> for Error {
    /// The nearest kind, with the same text: for code that has one error type for all of Ramway.
    fn from(error: CallError) -> Self {
        let kind = match error.status() {
            None => match error.cause {
                Cause::Error(error) => return error,
                Cause::Status { .. } => unreachable!("it has no status"),
            },
            Some(Status::TimedOut) => ErrorKind::TimedOut,
            Some(Status::Cancelled) => ErrorKind::Interrupted,
            Some(Status::Overloaded) => ErrorKind::Full,
            Some(Status::ReplyTooLarge) => ErrorKind::TooLarge,
            Some(Status::Draining) => ErrorKind::Closed,
            Some(Status::NoSuchMethod) => ErrorKind::NotFound,
            Some(_) => ErrorKind::Os,
        };
        Self::new(kind, error.to_string())
    }
}
