//! `ramway doctor`: what this machine can do for Ramway. Every item that can be tried is tried, not looked up.

#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod topics;

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::failure::{ERROR, Failure, Outcome};
use crate::output;

const NOTES: &str = "\
Every item is tried out where it can be, on memory and files of its own that
are gone afterwards.

  ok      as good as it gets
  worse   slower without it, or with a limit; it says which and how to mend it
  broken  Ramway cannot do without it here

Exit codes:
    0  nothing is broken
    1  something is broken, or with --strict something is worse

Examples:
  ramway doctor
  ramway doctor --json | jq '.items[] | select(.status != \"ok\")'";

/// How to look.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Print JSON: {"status", "items": [{"item", "status", "found", "because", "fix"}]}
    #[arg(long)]
    json: bool,
    /// Exit with 1 also where something is merely worse
    #[arg(long)]
    strict: bool,
}

/// How good an item is. Ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Worse,
    Broken,
}

/// One line of the diagnosis.
#[derive(Debug, Serialize)]
struct Item {
    item: &'static str,
    status: Status,
    found: String,
    /// What it means for Ramway, unless it is ok.
    because: Option<String>,
    fix: Option<String>,
}

impl Item {
    fn ok(item: &'static str, found: impl Into<String>) -> Self {
        Self { item, status: Status::Ok, found: found.into(), because: None, fix: None }
    }

    fn worse(item: &'static str, found: impl Into<String>, because: impl Into<String>, fix: impl Into<String>) -> Self {
        let (because, fix) = (Some(because.into()), Some(fix.into()));
        Self { item, status: Status::Worse, found: found.into(), because, fix }
    }

    fn broken(
        item: &'static str,
        found: impl Into<String>,
        because: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: Status::Broken, ..Self::worse(item, found, because, fix) }
    }
}

#[derive(Serialize)]
struct Report {
    status: Status,
    items: Vec<Item>,
}

/// Looks, prints, and fails where something is broken.
pub fn run(args: &Args) -> Outcome {
    let items = examine();
    let status = items.iter().map(|item| item.status).max().unwrap_or(Status::Ok);
    let report = Report { status, items };
    if args.json {
        output::json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    match status {
        Status::Broken => Err(Failure::quiet(ERROR)),
        Status::Worse if args.strict => Err(Failure::quiet(ERROR)),
        _ => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn examine() -> Vec<Item> {
    let mut items = vec![
        kernel::version(),
        kernel::futex(),
        kernel::membarrier(),
        kernel::io_uring(),
        kernel::sealing(),
        memory::directory(),
        kernel::locks(&memory::place()),
    ];
    items.push(topics::publishers());
    items.extend([memory::shm(), memory::memlock(), memory::huge_pages()]);
    items.extend([system::remove_ipc(), system::processes(), system::governor(), system::topology()]);
    items
}

#[cfg(not(target_os = "linux"))]
fn examine() -> Vec<Item> {
    vec![Item::worse(
        "system",
        std::env::consts::OS,
        "this command knows only Linux well enough to examine it",
        "run the tests of the library instead",
    )]
}

fn text(report: &Report) -> String {
    let width = report.items.iter().map(|item| item.item.len()).max().unwrap_or(0);
    let mut text = String::new();
    for item in &report.items {
        let style = style(item.status);
        let word = word(item.status);
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{style}{word:<6}{style:#}  {:<width$}  {}", item.item, item.found);
        for (label, said) in [("because", &item.because), ("fix", &item.fix)] {
            if let Some(said) = said {
                let indent = 6 + 2 + width + 2;
                let _ = writeln!(text, "{:indent$}{label}: {said}", "");
            }
        }
    }
    let count = |status| report.items.iter().filter(|item| item.status == status).count();
    let _ =
        writeln!(text, "\n{} ok, {} worse, {} broken", count(Status::Ok), count(Status::Worse), count(Status::Broken));
    text
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Worse => "worse",
        Status::Broken => "broken",
    }
}

fn style(status: Status) -> Style {
    match status {
        Status::Ok => AnsiColor::Green.on_default(),
        Status::Worse => AnsiColor::Yellow.on_default(),
        Status::Broken => AnsiColor::Red.on_default().bold(),
    }
}
