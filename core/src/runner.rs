//! How tests start programs of this build. Every package's tests take it from here.

use std::ffi::OsStr;
use std::process::Command;

/// Words that stand before each program of this build that a test starts, an emulator's for example, separated by spaces:
/// for a processor other than this one, where the kernel does not start the emulator by itself.
const RUNNER: &str = "RAMWAY_TEST_RUNNER";

/// The command that runs `file`, a program of this build.
pub fn program(file: impl AsRef<OsStr>) -> Command {
    let words = std::env::var(RUNNER).unwrap_or_default();
    let mut words = words.split_whitespace();
    let Some(first) = words.next() else { return Command::new(file) };
    let mut command = Command::new(first);
    command.args(words).arg(file);
    command
}

/// The command that runs this test program again.
#[allow(dead_code, reason = "not every package's tests run themselves")]
pub fn again() -> Command {
    program(std::env::current_exe().expect("a program that runs has a file"))
}
