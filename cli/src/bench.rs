//! `ramway bench`: runs the separate program `ramway-bench`, which is not part of this command.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use ramway_cli::color::Color;

use crate::failure::{Failure, NOT_FOUND, Outcome};

const PROGRAM: &str = "ramway-bench";

/// How to get the program where there is none.
const ADVICE: &str = "install it with `cargo install ramway-bench`, or with `make install-bench` in Ramway's source";

/// What `ramway-bench` is to do.
#[derive(clap::Args)]
pub struct Args {
    /// Passed on as they are; `ramway bench --help` has them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Becomes the program: its exit code, output and signals are this command's.
pub fn run(args: &Args, color: Color) -> Outcome {
    let Some(program) = find() else {
        return Err(Failure::new(NOT_FOUND, format!("the program {PROGRAM} is not installed; {ADVICE}")));
    };
    let error = Command::new(&program).args(color.argument()).args(&args.arguments).exec();
    Err(Failure::io(&error, format!("cannot run {}", program.display())))
}

/// The program beside this one, else the first of the PATH.
pub fn find() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(|own| own.parent()).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = beside.into_iter().chain(std::env::split_paths(&path));
    // A relative entry, or an empty one, leads to whatever lies in the working directory: it is left out.
    places.filter(|place| place.is_absolute()).map(|place| place.join(PROGRAM)).find(|program| is_executable(program))
}

fn is_executable(program: &std::path::Path) -> bool {
    program.is_file() && rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok()
}

/// How the user gets it, for a command that goes on without it.
pub fn advice() -> String {
    format!("{PROGRAM} is not installed, so nothing is measured; {ADVICE}")
}
