//! The `ramway` command: pipes through shared memory, and a look at what is there.
//!
//! One file a subcommand. What they share: [`failure`] (exit codes), [`output`] (stdout that may be closed),
//! [`units`] (sizes and durations), [`interrupt`] (Ctrl-C), [`progress`].

mod bench;
mod clean;
mod cli;
mod completions;
mod demo;
mod doctor;
mod failure;
mod inspect;
mod interrupt;
mod ls;
mod output;
mod procs;
mod progress;
mod recv;
mod ring;
mod send;
mod standard;
mod units;
mod unlink;
mod view;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

/// Counts, so that `ramway bench` can say that a message allocates nothing.
#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

fn main() -> ExitCode {
    // The second process of a measurement is this program again.
    if let Some(code) = ramway_bench::child_main_builtin() {
        return ExitCode::from(code as u8);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and the version go to standard output, what is wrong with the command line does not.
        Err(error) => match standard::output() {
            Err(failure) if !error.use_stderr() => return failure.report(),
            _ => error.exit(),
        },
    };
    cli.color.apply();
    let done = run(cli.command);
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> failure::Outcome {
    // The others say there what they have done; these two where their bytes go or come from is a file.
    if !matches!(command, Command::Send(_) | Command::Recv(_)) {
        standard::output()?;
    }
    match command {
        Command::Send(args) => send::run(&args),
        Command::Recv(args) => recv::run(&args),
        Command::Ls(args) => ls::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Unlink(args) => unlink::run(&args),
    }
}
