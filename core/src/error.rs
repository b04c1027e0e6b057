//! The one error type, with the same names and numbers in every language.

use std::ffi::CStr;
use std::fmt;

use crate::facts;

/// Of one entry for each kind: what it means, its number, and the text of an error that says nothing more.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal, $text:literal;)*) => {
        /// What went wrong. The numbers are part of the format (`docs/ABI.md`) and never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(i32)]
        pub enum ErrorKind {
            $($(#[$doc])* $kind = $code,)*
        }

        impl ErrorKind {
            /// The name as `docs/ABI.md` spells it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => stringify!($kind),)*
                }
            }

            /// The kind with this number, if there is one.
            pub const fn from_code(code: i32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$kind),)*
                    _ => None,
                }
            }

            const fn summary(self) -> &'static str {
                match self {
                    $(Self::$kind => $text,)*
                }
            }

            /// [`name`](Self::name) and the text for languages whose strings end in a NUL.
            #[doc(hidden)]
            pub const fn c_strings(self) -> (&'static CStr, &'static CStr) {
                match self {
                    $(Self::$kind => const {
                        (c_string(concat!(stringify!($kind), "\0")), c_string(concat!($text, "\0")))
                    },)*
                }
            }
        }
    };
}

const fn c_string(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a text holds a NUL"),
    }
}

facts::error_kinds!(kinds);

impl ErrorKind {
    /// The number that every language and the C ABI use.
    ///
    /// ```
    /// assert_eq!(ramway::ErrorKind::Full.code(), 5);
    /// ```
    pub const fn code(self) -> i32 {
        self as i32
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.summary())
    }
}

/// What every fallible call returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: a [kind](ErrorKind) to decide on, and a message that says what was tried, on which name, and what
/// to do. The kinds that a hot loop meets (`Full`, `Empty`, `TimedOut`, `Lagged`) carry no text and allocate nothing.
///
/// ```
/// let error = ramway::Ring::open("no-such-ring").receiver().unwrap_err();
/// assert_eq!(error.kind(), ramway::ErrorKind::NotFound);
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    /// 0 when the operating system had no part in it.
    errno: i32,
    detail: Detail,
}

/// What an error says besides its kind.
#[derive(Debug)]
enum Detail {
    Text(Box<str>),
    /// Of `Lagged` the number of messages lost, of any other kind 0: there is nothing more to say.
    Lost(u64),
}

/// Every call on the hot path returns one or a result: it stays small.
const _: () = assert!(size_of::<Error>() <= 24);

impl Error {
    /// `Lagged`, which allocates nothing.
    #[cold]
    pub(crate) const fn lagged(lost: u64) -> Self {
        Self { kind: ErrorKind::Lagged, errno: 0, detail: Detail::Lost(lost) }
    }

    /// An error with a message.
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, errno: 0, detail: Detail::Text(text.into().into_boxed_str()) }
    }

    /// An operating system error while `what` was done; the kind follows from the number.
    pub(crate) fn os(errno: i32, what: impl fmt::Display) -> Self {
        let kind = match errno {
            libc::ENOENT => ErrorKind::NotFound,
            libc::EEXIST => ErrorKind::AlreadyExists,
            libc::EACCES | libc::EPERM | libc::EROFS => ErrorKind::PermissionDenied,
            libc::ENOSPC | libc::ENOMEM | libc::EDQUOT => ErrorKind::NoSpace,
            libc::EINTR => ErrorKind::Interrupted,
            libc::ENOSYS | libc::EOPNOTSUPP => ErrorKind::Unsupported,
            // Another number on macOS.
            number if number == libc::ENOTSUP => ErrorKind::Unsupported,
            _ => ErrorKind::Os,
        };
        let cause = std::io::Error::from_raw_os_error(errno);
        Self { kind, errno, detail: Detail::Text(format!("{what}: {cause}").into_boxed_str()) }
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The number of [`kind`](Self::kind), the same in every language.
    pub fn code(&self) -> i32 {
        self.kind.code()
    }

    /// The operating system's error number, where it had a part in it.
    pub fn raw_os_error(&self) -> Option<i32> {
        (self.errno != 0).then_some(self.errno)
    }

    /// Of [`ErrorKind::Lagged`]: how many messages this subscriber has lost. `None` of any other kind.
    pub fn lost(&self) -> Option<u64> {
        match self.detail {
            Detail::Lost(lost) if self.kind == ErrorKind::Lagged => Some(lost),
            _ => None,
        }
    }

    /// The same error with whose state it is about, if it does not say more already.
    pub(crate) fn of(self, origin: &crate::origin::Origin) -> Self {
        match self.kind {
            ErrorKind::Closed | ErrorKind::PeerDead | ErrorKind::Corrupt | ErrorKind::TooLarge => self.context(origin),
            _ => self,
        }
    }

    /// The same error with `what` (what was tried, on which name) before its message. `Lagged` stays as it is, with its
    /// number.
    pub(crate) fn context(self, what: impl fmt::Display) -> Self {
        if self.kind == ErrorKind::Lagged {
            return self;
        }
        let text = format!("{what}: {self}");
        Self { detail: Detail::Text(text.into_boxed_str()), ..self }
    }
}

impl From<ErrorKind> for Error {
    #[inline]
    fn from(kind: ErrorKind) -> Self {
        Self { kind, errno: 0, detail: Detail::Lost(0) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.detail, self.lost()) {
            (Detail::Text(text), _) => f.write_str(text),
            (_, Some(lost)) => write!(f, "{lost} {}", self.kind.summary()),
            _ => f.write_str(self.kind.summary()),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match error.kind {
            ErrorKind::NotFound => Io::NotFound,
            ErrorKind::AlreadyExists => Io::AlreadyExists,
            ErrorKind::InvalidArgument | ErrorKind::TooLarge => Io::InvalidInput,
            ErrorKind::Busy => Io::ResourceBusy,
            ErrorKind::Full | ErrorKind::Empty => Io::WouldBlock,
            ErrorKind::TimedOut => Io::TimedOut,
            ErrorKind::Closed | ErrorKind::Detached => Io::BrokenPipe,
            ErrorKind::PeerDead => Io::ConnectionReset,
            ErrorKind::Corrupt | ErrorKind::AbiMismatch => Io::InvalidData,
            ErrorKind::PermissionDenied => Io::PermissionDenied,
            ErrorKind::NoSpace => Io::StorageFull,
            ErrorKind::Interrupted => Io::Interrupted,
            ErrorKind::Unsupported => Io::Unsupported,
            ErrorKind::Lagged | ErrorKind::Os => Io::Other,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lagged_carries_its_number_and_no_other_kind_has_one() {
        let error = Error::lagged(7).context("receiving from 'x'");
        assert_eq!((error.kind(), error.code(), error.lost()), (ErrorKind::Lagged, 19, Some(7)));
        assert_eq!(error.to_string(), "7 messages were lost: the publisher ejected this subscriber");
        assert_eq!(Error::lagged(u64::MAX).lost(), Some(u64::MAX));
        for other in [Error::from(ErrorKind::Empty), Error::new(ErrorKind::Corrupt, "why"), Error::os(2, "opening")] {
            assert_eq!(other.lost(), None);
        }
        let error = Error::from(ErrorKind::Closed).context("receiving from 'x'");
        assert_eq!(error.to_string(), "receiving from 'x': the peer closed");
        assert_eq!(error.context("at last").to_string(), "at last: receiving from 'x': the peer closed");
    }
}
