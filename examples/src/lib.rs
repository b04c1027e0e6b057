//! What the examples share: turning an error into an exit code.

use std::error::Error;
use std::process::ExitCode;

/// Runs a program's main part. An error is printed with the program's name and becomes exit code 1.
pub fn run(name: &str, main: impl FnOnce(&[&str]) -> Result<(), Box<dyn Error>>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    exit_code(name, main(&arguments))
}

/// The same for a program that reads its arguments itself.
pub fn exit_code(name: &str, result: Result<(), Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The programs of these pages are compiled, and run unless it says `no_run`. What says `rs` is a part of an example, which
/// `tests/run.rs` compares.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../../docs/INTEGRATION.md")]
#[doc = include_str!("../../docs/guides/buffer-pool.md")]
#[doc = include_str!("../../docs/guides/one-to-many.md")]
#[doc = include_str!("../../docs/guides/rpc.md")]
#[doc = include_str!("../../docs/start/rust.md")]
#[doc = include_str!("../../pool/README.md")]
pub struct Readme;
