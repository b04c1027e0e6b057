//! How a program of this repository begins and ends.

use std::process::ExitCode;

use clap::Parser;

use crate::color::Color;
use crate::failure::Outcome;
use crate::standard;

/// Reads the command line, applies its `--color`, runs the program, and gives its exit code; what failed is said on standard error.
pub fn main<P: Parser>(color: impl FnOnce(&P) -> Color, run: impl FnOnce(P) -> Outcome) -> ExitCode {
    let asked = match P::try_parse() {
        Ok(asked) => asked,
        // Help and the version go to standard output, what is wrong with the command line does not.
        Err(error) => match standard::output() {
            Err(failure) if !error.use_stderr() => return failure.report(),
            _ => error.exit(),
        },
    };
    color(&asked).apply();
    match run(asked) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
