//! The runner: every vector through every language, and every language with every other.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use ramway_conformance::vectors;

/// Holds every language's Ramway against the format, and against every other's.
#[derive(Parser)]
#[command(version, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Every segment image and every handshake, read by every language's program.
    Vectors(vectors::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Vectors(args) => vectors::run(&args),
    }
}
