//! The program `ramway-bridge`.

use std::process::ExitCode;

use ramway_bridge::command::{self, Cli};

fn main() -> ExitCode {
    ramway_cli::program::main(|cli: &Cli| cli.color, command::run)
}
