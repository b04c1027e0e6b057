//! `ramway ls`: the segments, listeners and buses of a directory, and who is attached.

use std::path::PathBuf;

use anstyle::AnsiColor;
use comfy_table::Cell;
use ramway::survey;
use serde::Serialize;

use crate::failure::{Failure, NOT_FOUND, Outcome};
use crate::output;
use crate::procs::Processes;
use crate::units::{age, size};
use crate::view::{TopicView, View};

const NOTES: &str = "\
Lists the segments and listeners of the Ramway directory and the live buses of
all processes that are visible. Only reads and queries locks: it takes none,
maps nothing and disturbs nobody.

  live      somebody is attached
  stale     nobody is: left by the dead, or waiting for its next receiver or
            durable subscriber
  unusable  not Ramway's, of another version, damaged, or not readable

The fill of a topic is how far the slowest of its reliable subscribers is
behind, by which its publisher has to wait. What is said of the others is in
`ramway inspect`.

Exit codes: 0 listed, also where nothing is; 6 a directory named here is not
there; `ramway --help` has the rest.

Examples:
  ramway ls
  ramway ls /run/user/1000/my-rings
  ramway ls --json | jq '.segments[] | select(.state == \"stale\") | .name'
  ramway ls --json | jq '.segments[].topic.subscribers[]? | select(.blocks)'";

/// What to list.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The directory to list [default: RAMWAY_DIR, else /dev/shm/ramway-UID]
    directory: Option<PathBuf>,
    /// Print JSON: {"directory", "hidden_processes", "segments": [...], "buses": [...]}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listing {
    directory: PathBuf,
    /// Processes that may not be read, so that their locks and buses are not seen.
    hidden_processes: usize,
    segments: Vec<View>,
    buses: Vec<View>,
}

/// Lists it.
pub fn run(args: &Args) -> Outcome {
    let directory = args.directory.clone().unwrap_or_else(survey::directory);
    let found = survey::ls(&directory)?;
    // The default one need not be there yet; one that was named is a mistake.
    if let Some(named) = args.directory.as_deref().filter(|named| !named.exists()) {
        return Err(Failure::new(NOT_FOUND, format!("there is no directory {}", named.display())));
    }
    // After the list: who is named as attached was there no earlier than what it is attached to.
    let processes = Processes::read();
    let listing = Listing {
        hidden_processes: processes.hidden,
        segments: found.iter().map(|found| View::new(&found.name, &found.segment, &processes)).collect(),
        buses: processes.buses().into_iter().map(View::bus).collect(),
        directory,
    };
    if args.json { output::json(&listing) } else { output::print(&text(&listing)) }
}

fn text(listing: &Listing) -> String {
    let mut text = String::new();
    if listing.segments.is_empty() && listing.buses.is_empty() {
        text = format!("nothing in {}, and no live bus\n", listing.directory.display());
    } else {
        let mut table = output::table(&["name", "kind", "state", "capacity", "fill", "age", "attached"]);
        for view in &listing.segments {
            table.add_row(row(view, view.details.as_ref().map_or("-", |details| details.kind)));
        }
        for view in &listing.buses {
            table.add_row(row(view, "bus"));
        }
        text.push_str(&output::render(&table));
    }
    let hidden = listing.segments.iter().chain(&listing.buses).any(|view| view.hidden_users);
    if hidden && listing.hidden_processes > 0 {
        text.push_str(&format!(
            "{} process(es) of other users could not be read: who is attached may be incomplete\n",
            listing.hidden_processes
        ));
    }
    text
}

fn row(view: &View, kind: &str) -> Vec<Cell> {
    let color = match view.state {
        "live" => AnsiColor::Green,
        "stale" => AnsiColor::Yellow,
        _ => AnsiColor::Red,
    };
    let style = color.on_default();
    let state = Cell::new(format!("{style}{}{style:#}", view.state));
    let name = Cell::new(&view.name);
    let Some(details) = &view.details else {
        let why = view.error.clone().unwrap_or_else(|| view.attached());
        return vec![name, Cell::new(kind), state, Cell::new("-"), Cell::new("-"), Cell::new("-"), Cell::new(why)];
    };
    let each = |show: &dyn Fn(&crate::view::RingView) -> String| {
        let shown: Vec<String> = details.rings.iter().map(show).collect();
        if shown.is_empty() { "-".to_owned() } else { shown.join(" / ") }
    };
    let capacity = match &details.region {
        Some(region) => size(region.len),
        None => each(&|ring| size(ring.capacity)),
    };
    let capacity = details.topic.as_ref().map_or(capacity, |topic| size(topic.capacity));
    let fill = each(&|ring| {
        let mut shown = percent(ring.fill, ring.capacity);
        if let Some(messages) = ring.undelivered_messages.filter(|messages| *messages > 0) {
            shown.push_str(&format!(", {messages} msg"));
        }
        if ring.damage.is_some() {
            shown.push_str(", damaged");
        }
        if ring.unseen_close {
            shown.push_str(", closed");
        }
        shown
    });
    let fill = details.topic.as_ref().map_or(fill, topic_fill);
    let mut attached = view.attached_shortly();
    if details.of_another_boot {
        attached.push_str(" (made in another boot)");
    }
    vec![
        name,
        Cell::new(kind),
        state,
        Cell::new(capacity),
        Cell::new(fill),
        Cell::new(age(details.age())),
        Cell::new(attached),
    ]
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.0} %", (part as f64 / whole as f64 * 100.0).ceil())
}

/// How far the slowest of those is behind whom the publisher waits for, and how the log stands.
fn topic_fill(topic: &TopicView) -> String {
    let mut words: Vec<String> = Vec::new();
    if let Some(slowest) = topic.slowest() {
        words.extend(slowest.lag_bytes.map(|lag| percent(lag, topic.capacity)));
        words.extend(slowest.lag_messages.filter(|messages| *messages > 0).map(|messages| format!("{messages} msg")));
    }
    if topic.damage.is_some() {
        words.push("damaged".into());
    }
    if topic.publisher.role.closed {
        words.push("closed".into());
    }
    if words.is_empty() { "-".into() } else { words.join(", ") }
}
