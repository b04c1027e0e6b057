//! Errors on their way to JavaScript, where `lib/errors.ts` makes a `RamwayError` of them.

use ramway::ErrorKind;

/// `ERR_RAMWAY_PEER_DEAD` for `PeerDead`.
fn code(kind: ErrorKind) -> String {
    let mut code = String::from("ERR_RAMWAY");
    for letter in kind.name().chars() {
        if letter.is_ascii_uppercase() {
            code.push('_');
        }
        code.push(letter.to_ascii_uppercase());
    }
    code
}

/// "CODE errno text": one line for `lib/errors.ts` to take apart; errno is 0 where the operating system had no part.
pub(crate) fn thrown(error: &ramway::Error) -> napi::Error {
    let errno = error.raw_os_error().unwrap_or(0);
    napi::Error::from_reason(format!("{} {errno} {error}", code(error.kind())))
}

/// An error of this module's own.
pub(crate) fn refuse(kind: ErrorKind, text: impl std::fmt::Display) -> napi::Error {
    napi::Error::from_reason(format!("{} 0 {text}", code(kind)))
}

/// What an operating system call of this module's own failed with.
pub(crate) fn os(error: &std::io::Error, what: &str) -> napi::Error {
    let errno = error.raw_os_error().unwrap_or(0);
    napi::Error::from_reason(format!("{} {errno} {what}: {error}", code(ErrorKind::Os)))
}

pub(crate) trait OrThrow<T> {
    fn or_throw(self) -> napi::Result<T>;
}

impl<T> OrThrow<T> for ramway::Result<T> {
    fn or_throw(self) -> napi::Result<T> {
        self.map_err(|error| thrown(&error))
    }
}
