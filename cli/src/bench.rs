//! `ramway bench`: runs the separate program `ramway-bench`, which is not part of this command.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use ramway_cli::color::Color;

use crate::failure::{Failure, NOT_FOUND, Outcome};

const PROGRAM: &str = "ramway-bench";

/// What `ramway-bench` is to do.
#[derive(clap::Args)]
pub struct Args {
    /// Passed on as they are; `ramway bench --help` has them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Becomes the program: its exit code, output and signals are this command's.
pub fn run(args: &Args, color: Color) -> Outcome {
    let program = find().map_err(|why| Failure::new(NOT_FOUND, why))?;
    let error = Command::new(&program).args(color.argument()).args(&args.arguments).exec();
    Err(Failure::io(&error, format!("cannot run {}", program.display())))
}

/// The program beside this one, else the first of the PATH; else how to get it.
pub fn find() -> Result<PathBuf, String> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(|own| own.parent()).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = beside.into_iter().chain(std::env::split_paths(&path));
    // A relative entry, or an empty one, leads to whatever lies in the working directory: it is left out.
    let mut programs = places.filter(|place| place.is_absolute()).map(|place| place.join(PROGRAM));
    programs.find(|program| is_executable(program)).ok_or_else(|| {
        format!(
            "the program {PROGRAM} is not installed; install it with `cargo install {PROGRAM}`, or with `make install-bench` in \
             Ramway's source"
        )
    })
}

fn is_executable(program: &std::path::Path) -> bool {
    program.is_file() && rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok()
}
