//! `--color`.

use clap::ValueEnum;

/// When to colour.
#[derive(Clone, Copy, ValueEnum)]
pub enum Color {
    /// On a terminal, unless the environment says otherwise.
    Auto,
    /// Also into files and pipes.
    Always,
    /// Not at all.
    Never,
}

impl Color {
    /// Makes it the choice of every later write through `anstream`.
    pub fn apply(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }

    /// How the choice is handed on to another command, if it is one.
    pub fn argument(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::Always => Some("--color=always"),
            Self::Never => Some("--color=never"),
        }
    }
}
