//! Errors on their way to JavaScript, where `lib/errors.ts` makes a `RamwayError` of them.

use ramway::ErrorKind;

/// "ramway KIND errno text": for `lib/errors.ts` to take apart; errno is 0 where the operating system had no part.
fn message(kind: ErrorKind, errno: Option<i32>, text: impl std::fmt::Display) -> napi::Error {
    napi::Error::from_reason(format!("ramway {} {} {text}", kind.name(), errno.unwrap_or(0)))
}

/// An error of the core's.
pub(crate) fn thrown(error: &ramway::Error) -> napi::Error {
    message(error.kind(), error.raw_os_error(), error)
}

/// An error of this module's own.
pub(crate) fn refuse(kind: ErrorKind, text: impl std::fmt::Display) -> napi::Error {
    message(kind, None, text)
}

/// What an operating system call of this module's own failed with.
pub(crate) fn os(error: &std::io::Error, what: &str) -> napi::Error {
    message(ErrorKind::Os, error.raw_os_error(), format_args!("{what}: {error}"))
}

pub(crate) trait OrThrow<T> {
    fn or_throw(self) -> napi::Result<T>;
}

impl<T> OrThrow<T> for ramway::Result<T> {
    fn or_throw(self) -> napi::Result<T> {
        self.map_err(|error| thrown(&error))
    }
}
