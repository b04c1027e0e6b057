//! `ramway clean`: removes what dead processes left.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use ramway::survey::{self, CleanOptions};
use serde::Serialize;

use crate::failure::{Failure, Outcome, code_of};
use crate::output;

const NOTES: &str = "\
Removes the segments of the Ramway directory that nobody uses. Never one that
somebody uses, however quiet it is, and never a file that is not Ramway's.
What still holds undelivered messages, the unseen end of a stream, or is
persistent stays unless --undelivered asks for it. A topic holds them for its
durable subscribers only, of which the reason names one by its label: start it,
or forget it with `ramway sub NAME --unsubscribe --label LABEL`.

What cannot be removed is said on standard error, and the others go on.

Exit codes: 0 done, also where there was nothing to do; 6 a segment named here
is not there; 1 and others, as `ramway --help` has them: the first failure's.

Examples:
  ramway clean --dry-run
  ramway clean
  ramway clean --undelivered films";

/// What to remove.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Only these segments, by name or by a path with a `/` [default: all of the Ramway directory]
    names: Vec<PathBuf>,
    /// Only say what would be done
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Also remove what nobody uses but a later receiver or durable subscriber could want
    #[arg(long)]
    undelivered: bool,
    /// Print JSON: {"directory", "dry_run", "files": [{"name", "outcome", "why"}]}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    directory: PathBuf,
    dry_run: bool,
    files: Vec<Cleaned>,
}

#[derive(Serialize)]
struct Cleaned {
    name: String,
    /// `removed` (with --dry-run: would be), `kept`, `not-ramway` or `error`.
    outcome: &'static str,
    why: Option<String>,
    /// The exit code, if it failed.
    #[serde(skip)]
    failed: Option<u8>,
}

/// Removes it.
pub fn run(args: &Args) -> Outcome {
    let options = CleanOptions { dry_run: args.dry_run, undelivered: args.undelivered };
    let directory = survey::directory();
    let outcomes = if args.names.is_empty() {
        survey::clean(&directory, &options)?
            .into_iter()
            .map(|(name, outcome)| cleaned(Path::new(&name), outcome))
            .collect()
    } else {
        args.names.iter().map(|name| cleaned(name, survey::clean_one(name, &options))).collect()
    };
    let report = Report { directory, dry_run: args.dry_run, files: outcomes };
    if args.json {
        output::json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    for file in report.files.iter().filter(|file| file.failed.is_some()) {
        output::note(file.why.as_deref().unwrap_or_default());
    }
    report.files.iter().find_map(|file| file.failed).map_or(Ok(()), |code| Err(Failure::quiet(code)))
}

fn cleaned(name: &Path, outcome: ramway::Result<survey::Outcome>) -> Cleaned {
    let (outcome, why, failed) = match outcome {
        Ok(survey::Outcome::Removed) => ("removed", None, None),
        Ok(survey::Outcome::Kept(why)) => ("kept", Some(why), None),
        Ok(survey::Outcome::NotRamway) => ("not-ramway", None, None),
        Err(error) => ("error", Some(error.to_string()), Some(code_of(error.kind()))),
    };
    Cleaned { name: name.display().to_string(), outcome, why, failed }
}

fn text(report: &Report) -> String {
    if report.files.is_empty() {
        return format!("nothing in {}\n", report.directory.display());
    }
    let mut text = String::new();
    for file in &report.files {
        let name = &file.name;
        // It names a durable subscriber, perhaps.
        let why = output::printable(file.why.as_deref().unwrap_or_default());
        // Writing to a `String` cannot fail.
        let _ = match (file.outcome, report.dry_run) {
            ("removed", true) => writeln!(text, "would remove {name}"),
            ("removed", false) => writeln!(text, "removed {name}"),
            ("kept", _) => writeln!(text, "kept {name}: {why}"),
            ("not-ramway", _) => writeln!(text, "left {name}: not Ramway's"),
            // Said on standard error.
            _ => Ok(()),
        };
    }
    text
}
