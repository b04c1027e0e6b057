//! What can go wrong: a wrong option, a length, the limit, the system's memory.

use std::{fmt, io};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An option of the builder cannot be right; the message says which and what was expected.
    InvalidOption,
    /// No buffer of any pool can be this long.
    TooLarge,
    /// The pool owns as many bytes as `max_bytes` allows, and too few of them are idle.
    LimitReached,
    /// The system has no memory left.
    OutOfMemory,
}

/// An error, with what was asked for and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    text: String,
}

/// What fallible calls give.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            ErrorKind::InvalidOption | ErrorKind::TooLarge => io::ErrorKind::InvalidInput,
            ErrorKind::LimitReached => io::ErrorKind::QuotaExceeded,
            ErrorKind::OutOfMemory => io::ErrorKind::OutOfMemory,
        };
        io::Error::new(kind, error)
    }
}
