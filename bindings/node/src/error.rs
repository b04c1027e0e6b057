//! Errors on their way to JavaScript, where `lib/errors.ts` makes a `RamwayError` of them.

use ramway::ErrorKind;

/// "ramway KIND number text": for `lib/errors.ts` to take apart. The number is the operating system's where it had a part, of
/// `Lagged` how many messages were lost, else 0.
fn message(kind: ErrorKind, number: u64, text: impl std::fmt::Display) -> napi::Error {
    napi::Error::from_reason(format!("ramway {} {number} {text}", kind.name()))
}

fn number(errno: Option<i32>) -> u64 {
    errno.unwrap_or(0).unsigned_abs().into()
}

/// An error of the core's.
pub(crate) fn thrown(error: &ramway::Error) -> napi::Error {
    message(error.kind(), error.lost().unwrap_or_else(|| number(error.raw_os_error())), error)
}

/// An error of this module's own.
pub(crate) fn refuse(kind: ErrorKind, text: impl std::fmt::Display) -> napi::Error {
    message(kind, 0, text)
}

/// What an operating system call of this module's own failed with.
pub(crate) fn os(error: &std::io::Error, what: &str) -> napi::Error {
    message(ErrorKind::Os, number(error.raw_os_error()), format_args!("{what}: {error}"))
}

pub(crate) trait OrThrow<T> {
    fn or_throw(self) -> napi::Result<T>;
}

impl<T> OrThrow<T> for ramway::Result<T> {
    fn or_throw(self) -> napi::Result<T> {
        self.map_err(|error| thrown(&error))
    }
}
