//! `ramway man`: the manual pages, made from what `--help` is made from.

use std::fs;
use std::iter;
use std::path::PathBuf;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::Cli;
use crate::failure::{Failure, Outcome};

/// Where to write.
#[derive(clap::Args)]
pub struct Args {
    /// A folder that is there: ramway.1 and a page a subcommand are written into it
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Writes the pages: `ramway.1`, and `ramway-SUBCOMMAND.1` for each that is shown.
pub fn run(args: &Args) -> Outcome {
    let mut command = Cli::command().disable_help_subcommand(true);
    // Makes the subcommands' full names and their inherited options, which the pages say.
    command.build();
    let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    iter::once(&command).chain(shown).try_for_each(|command| page(args, command))
}

fn page(args: &Args, command: &clap::Command) -> Outcome {
    // `ramway-send`, for a subcommand.
    let name = command.get_display_name().unwrap_or(command.get_name());
    let path = args.folder.join(format!("{name}.1"));
    let mut text = Vec::new();
    // The same bytes on every day: no date.
    Man::new(command.clone())
        .title(name)
        .source(concat!("Ramway ", env!("CARGO_PKG_VERSION")))
        .manual("Ramway")
        .date("")
        .render(&mut text)
        .and_then(|()| fs::write(&path, &text))
        .map_err(|error| Failure::io(&error, format_args!("cannot write the page {}", path.display())))
}
