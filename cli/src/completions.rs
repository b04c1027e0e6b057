//! `ramway completions`: a script that completes this command in a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Outcome;
use crate::output;

const EXAMPLES: &str = "\
Where it goes:
  bash  ramway completions bash > ~/.local/share/bash-completion/completions/ramway
  zsh   ramway completions zsh > \"${fpath[1]}/_ramway\"
  fish  ramway completions fish > ~/.config/fish/completions/ramway.fish";

/// What to print.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell that is to read it
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &Args) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ramway", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
