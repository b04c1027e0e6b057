//! The runner: every vector through every language, and every language with every other.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use ramway_agents::languages;
use ramway_conformance::{all, folder, matrix, speed, vectors};

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
    /// Both of these, with one line at the end that counts.
    All(all::Args),
    /// One language's figures beside another's, from one interleaved run.
    Speed(speed::Args),
    /// Builds agents, and prints how each is started to be measured, as JSON on the last line.
    Agents {
        /// The languages
        #[arg(required = true)]
        languages: Vec<String>,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = folder::remove_when_stopped() {
        eprintln!("watching for signals: {error}");
        return ExitCode::FAILURE;
    }
    match cli.command {
        Command::Vectors(args) => vectors::run(&args),
        Command::Matrix(args) => matrix::run(&args),
        Command::All(args) => all::run(&args),
        Command::Speed(args) => speed::run(&args),
        Command::Agents { languages } => match languages::commands(&languages) {
            Ok(commands) => {
                println!("{commands}");
                ExitCode::SUCCESS
            }
            Err(cause) => {
                eprintln!("error: {cause}");
                ExitCode::FAILURE
            }
        },
    }
}
