//! The `ramway` command: pipes through shared memory, and an inspection of what is shared.
//!
//! One file a subcommand; `pub` is in `publish`, `sub` in `subscribe`. What they share: [`outgoing`] (input into a ring or a
//! topic), [`incoming`] (messages out of one), [`failure`] (exit codes), [`output`] (stdout that may be closed),
//! [`units`] (sizes and durations), [`interrupt`] (Ctrl-C), [`standard`] (closed descriptors) and [`progress`].

mod bench;
mod call;
mod clean;
mod cli;
mod completions;
mod demo;
mod doctor;
mod incoming;
mod inspect;
mod ls;
mod man;
mod outgoing;
mod procs;
mod progress;
mod publish;
mod recv;
mod ring;
mod send;
mod serve;
mod subscribe;
mod topic;
mod unlink;
mod view;

use std::process::ExitCode;

use cli::{Cli, Command};
use ramway_cli::{failure, interrupt, output, program, standard, units};

fn main() -> ExitCode {
    program::main(|cli: &Cli| cli.color, run)
}

fn run(cli: Cli) -> failure::Outcome {
    // The others say there what they have done; these where their bytes go or come from is a file.
    if !matches!(cli.command, Command::Send(_) | Command::Recv(_) | Command::Pub(_) | Command::Sub(_)) {
        standard::output()?;
    }
    match cli.command {
        Command::Send(args) => send::run(&args),
        Command::Recv(args) => recv::run(&args),
        Command::Pub(args) => publish::run(&args),
        Command::Sub(args) => subscribe::run(&args),
        Command::Call(args) => call::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Ls(args) => ls::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Bench(args) => bench::run(&args, cli.color),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Unlink(args) => unlink::run(&args),
    }
}
