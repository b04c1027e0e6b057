//! The runner: every vector through every language, and every language with every other.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use ramway_conformance::{matrix, vectors};

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
    /// Every language with every other, in both roles, over rings and buses.
    Matrix(matrix::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Vectors(args) => vectors::run(&args),
        Command::Matrix(args) => matrix::run(&args),
    }
}
