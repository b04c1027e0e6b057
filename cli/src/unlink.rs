//! `ramway unlink`: removes segments by name.

use std::path::PathBuf;

use ramway::survey;

use crate::failure::{Failure, Outcome, code_of};
use crate::output;

const NOTES: &str = "\
Removes the segments that are named, also persistent ones, rings that hold
undelivered messages, and topics with durable subscribers: what was kept for
them is lost. Never one that somebody uses, and never
what is not a Ramway segment.

All names are tried; what fails is said on standard error.

Exit codes: 0 all are removed; 6 nothing has a name; 7 somebody uses a segment;
9 it is not a Ramway segment; `ramway --help` has the rest. The first failure
decides.

Examples:
  ramway unlink films
  ramway unlink /run/rings/box";

/// What to remove.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The segments' names, or paths to them with a `/`
    #[arg(required = true, value_name = "NAME")]
    names: Vec<PathBuf>,
}

/// Removes them.
pub fn run(args: &Args) -> Outcome {
    let mut done = Ok(());
    for name in &args.names {
        match survey::unlink(name) {
            Ok(()) => output::print(&format!("removed {}\n", name.display()))?,
            Err(error) => {
                output::note(&error.to_string());
                done = done.and(Err(Failure::quiet(code_of(error.kind()))));
            }
        }
    }
    done
}
