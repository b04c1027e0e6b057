//! How a subcommand fails: an exit code and a sentence.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use ramway::ErrorKind;

use crate::output::printable;

/// An error that no other code names.
pub const ERROR: u8 = 1;
/// The command line is wrong (clap uses the same number).
pub const USAGE: u8 = 2;
/// Timed out.
pub const TIMED_OUT: u8 = 3;
/// The process on the other side died without closing.
pub const PEER_DIED: u8 = 4;
/// The other side closed before everything was sent.
pub const PEER_CLOSED: u8 = 5;
/// Nothing has this name.
pub const NOT_FOUND: u8 = 6;
/// The name or the role is taken.
pub const TAKEN: u8 = 7;
/// Not enough memory or space.
pub const NO_SPACE: u8 = 8;
/// Not a Ramway segment, or one that cannot be read.
pub const NOT_USABLE: u8 = 9;

/// The server ended a call with an error.
pub const CALL_FAILED: u8 = 10;

/// Why a subcommand ends early.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    /// `None` where there is nobody left to tell, or everything has been said.
    text: Option<String>,
}

/// What a subcommand returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// With this exit code, saying this on stderr.
    pub fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: Some(text.into()) }
    }

    /// With exit code 1, saying this on stderr.
    pub fn error(text: impl Into<String>) -> Self {
        Self::new(ERROR, text)
    }

    /// With this exit code, saying nothing.
    pub fn quiet(code: u8) -> Self {
        Self { code, text: None }
    }

    /// With the code that fits this error of the operating system while `what` was done.
    pub fn io(error: &io::Error, what: impl fmt::Display) -> Self {
        let code = match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::OutOfMemory => NO_SPACE,
            _ => ERROR,
        };
        Self::new(code, format!("{what}: {error}"))
    }

    /// Of the library, which calls these options by its own names: `allow_disk` is `--allow-disk` here, and `allow_uids` is
    /// `--allow-uid`, which is given once for each user.
    pub fn of_options(error: &ramway::Error, options: &[&str]) -> Self {
        let mut text = error.to_string();
        for option in options {
            let here = if *option == "allow_uids" { "allow_uid" } else { option };
            text = text.replace(option, &format!("--{}", here.replace('_', "-")));
        }
        Self::new(code_of(error.kind()), text)
    }

    /// The same, saying this too.
    pub fn and(self, more: &str) -> Self {
        Self { text: self.text.map(|text| format!("{text}; {more}")), ..self }
    }

    /// Says it on stderr and gives the exit code.
    pub fn report(self) -> ExitCode {
        if let Some(text) = self.text {
            // Not `eprintln!`, which panics where stderr is closed.
            let style = anstyle::AnsiColor::Red.on_default().bold();
            let _ = writeln!(anstream::stderr(), "{style}ramway:{style:#} {}", printable(&text));
        }
        ExitCode::from(self.code)
    }
}

impl From<ramway::Error> for Failure {
    fn from(error: ramway::Error) -> Self {
        Self::new(code_of(error.kind()), error.to_string())
    }
}

/// Whether an error says more than its kind and of which ring: a `Closed` with a text is a name that vanished, not the end of
/// a stream.
pub fn has_text(error: &ramway::Error) -> bool {
    !error.to_string().ends_with(&error.kind().to_string())
}

/// The exit code for an error of the library.
pub fn code_of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::InvalidArgument => USAGE,
        ErrorKind::TimedOut => TIMED_OUT,
        ErrorKind::PeerDead => PEER_DIED,
        ErrorKind::Closed => PEER_CLOSED,
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::AlreadyExists | ErrorKind::Busy => TAKEN,
        ErrorKind::NoSpace => NO_SPACE,
        ErrorKind::Corrupt | ErrorKind::AbiMismatch => NOT_USABLE,
        _ => ERROR,
    }
}
