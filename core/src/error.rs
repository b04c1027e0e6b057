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
/// to do. The kinds that a hot loop meets (`Full`, `Empty`, `TimedOut`) carry no text and allocate nothing.
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
    text: Option<Box<str>>,
}

impl Error {
    /// An error with a message.
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, errno: 0, text: Some(text.into().into_boxed_str()) }
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
        Self { kind, errno, text: Some(format!("{what}: {cause}").into_boxed_str()) }
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

    /// The same error with whose state it is about, if it does not say more already.
    pub(crate) fn of(self, origin: &crate::origin::Origin) -> Self {
        match self.kind {
            ErrorKind::Closed | ErrorKind::PeerDead | ErrorKind::Corrupt | ErrorKind::TooLarge => self.context(origin),
            _ => self,
        }
    }

    /// The same error with `what` (what was tried, on which name) before its message.
    pub(crate) fn context(self, what: impl fmt::Display) -> Self {
        let text = match &self.text {
            Some(text) => format!("{what}: {text}"),
            None => format!("{what}: {}", self.kind),
        };
        Self { text: Some(text.into_boxed_str()), ..self }
    }
}

impl From<ErrorKind> for Error {
    #[inline]
    fn from(kind: ErrorKind) -> Self {
        Self { kind, errno: 0, text: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => f.write_str(self.kind.summary()),
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
            ErrorKind::Os => Io::Other,
        };
        Self::new(kind, error)
    }
}
