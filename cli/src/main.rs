//! The `ramway` command: pipes through shared memory, and a look at what is there.
//!
//! One file a subcommand. What they share: [`failure`] (exit codes), [`output`] (stdout that may be closed),
//! [`units`] (sizes and durations), [`interrupt`] (Ctrl-C), [`progress`].

mod cli;
mod completions;
mod doctor;
mod failure;
mod interrupt;
mod output;
mod place;
mod progress;
mod recv;
mod send;
mod units;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli.color.apply();
    let done = match cli.command {
        Command::Send(args) => send::run(&args),
        Command::Recv(args) => recv::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
