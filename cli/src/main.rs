//! The `ramway` command: pipes through shared memory, and an inspection of what is shared.
//!
//! One file a subcommand. What they share: [`failure`] (exit codes), [`output`] (stdout that may be closed),
//! [`units`] (sizes and durations), [`interrupt`] (Ctrl-C), [`standard`] (closed descriptors) and [`progress`].

mod bench;
mod clean;
mod cli;
mod completions;
mod demo;
mod doctor;
mod inspect;
mod ls;
mod procs;
mod progress;
mod recv;
mod ring;
mod send;
mod unlink;
mod view;

use std::process::ExitCode;

use cli::{Cli, Command};
use ramway_cli::{failure, interrupt, output, program, standard, units};

fn main() -> ExitCode {
    program::main(|cli: &Cli| cli.color, run)
}

fn run(cli: Cli) -> failure::Outcome {
    // The others say there what they have done; these two where their bytes go or come from is a file.
    if !matches!(cli.command, Command::Send(_) | Command::Recv(_)) {
        standard::output()?;
    }
    match cli.command {
        Command::Send(args) => send::run(&args),
        Command::Recv(args) => recv::run(&args),
        Command::Ls(args) => ls::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Bench(args) => bench::run(&args, cli.color),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Unlink(args) => unlink::run(&args),
    }
}
