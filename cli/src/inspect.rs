//! `ramway inspect`: one segment's header, decoded.

use std::fmt::Write;
use std::path::PathBuf;

use ramway::{ErrorKind, survey};
use serde::Serialize;

use crate::failure::Outcome;
use crate::output;
use crate::procs::Processes;
use crate::units::{age, size};
use crate::view::{Details, RingView, RoleView, TopicView, View};

const NOTES: &str = "\
Prints the header of a segment: geometry, positions, epochs, flags, and who
holds which lock; of a topic also each subscriber that has a slot, how far it
is behind and what it has lost; and every live bus of that name. Only reads and queries
locks: of a segment in use it is a snapshot whose numbers may not be of one
moment.

Exit codes: 0 shown; 6 nothing has this name; 9 it is not a Ramway segment, of
another version, or corrupt.

Examples:
  ramway inspect films
  ramway inspect /run/rings/box --json";

/// What to inspect.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The segment's name, or a path to it with a `/`
    name: PathBuf,
    /// Print JSON: {"segment": {...}|null, "buses": [...]}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Inspection {
    segment: Option<View>,
    buses: Vec<View>,
}

/// Shows it.
pub fn run(args: &Args) -> Outcome {
    let found = survey::inspect(&args.name);
    let processes = Processes::read();
    let name = args.name.to_string_lossy();
    let buses: Vec<View> = processes.buses().into_iter().filter(|bus| bus.name == name).map(View::bus).collect();
    let segment = match found {
        // A bus has no segment of its own under its name: the listener's, which may have gone, or a bare socket.
        Err(error) if !buses.is_empty() && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => {
            None
        }
        found => Some(View::new(args.name.as_os_str(), &Ok(found?), &processes)),
    };
    let inspection = Inspection { segment, buses };
    if args.json {
        return output::json(&inspection);
    }
    let mut text = String::new();
    for view in inspection.segment.iter().chain(&inspection.buses) {
        if !text.is_empty() {
            text.push('\n');
        }
        describe(view, &mut text);
    }
    output::print(&text)
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{name:<13} {value}");
}

fn describe(view: &View, text: &mut String) {
    line(text, "name", &view.name);
    if let Some(path) = &view.path {
        line(text, "path", path);
    }
    line(text, "state", view.state);
    match &view.details {
        Some(details) => header(details, text),
        None => line(text, "header", "cannot be read from here"),
    }
    line(text, "attached", view.attached());
    for ring in view.details.iter().flat_map(|details| &details.rings) {
        describe_ring(ring, text);
    }
    if let Some(topic) = view.details.as_ref().and_then(|details| details.topic.as_ref()) {
        describe_topic(topic, text);
    }
}

fn header(details: &Details, text: &mut String) {
    line(text, "kind", details.kind);
    line(text, "version", &details.version);
    line(text, "size", format_args!("{} ({} bytes)", size(details.size), details.size));
    line(text, "made", format_args!("{} ago ({} ns since 1970)", age(details.age()), details.created_ns));
    let boot = if details.of_another_boot { "another boot: cannot be resumed" } else { "this boot" };
    line(text, "boot", format_args!("{} ({boot})", details.boot_id));
    line(text, "owner", format_args!("user {}, mode {}, inode {}", details.uid, details.mode, details.inode));
    line(text, "flags", if details.persistent { "persistent" } else { "none" });
    line(text, "features", format_args!("optional {:#x}", details.features_optional));
    if let Some(locks) = &details.locks {
        let held = |held| if held { "held" } else { "free" };
        let (in_use, producer, consumer) = (held(locks.in_use), held(locks.producer), held(locks.consumer));
        if details.topic.is_some() {
            line(text, "locks", format_args!("in use {in_use}, publisher {producer}"));
        } else {
            line(text, "locks", format_args!("in use {in_use}, producer {producer}, consumer {consumer}"));
        }
    }
    if let Some(region) = &details.region {
        line(text, "data", format_args!("{} bytes of {} at {:#x}", region.len, region.capacity, region.data_offset));
        let waits = if region.has_waiter { "somebody waits" } else { "nobody waits" };
        line(text, "notified", format_args!("{} times, {waits}", region.notifications));
    }
}

fn describe_ring(ring: &RingView, text: &mut String) {
    let _ = writeln!(text, "\nring (block {})", ring.block);
    line(text, "  data", format_args!("{} bytes at {:#x}, aligned to {}", ring.capacity, ring.data_offset, ring.align));
    line(text, "  tail", ring.tail);
    line(text, "  head", ring.head);
    line(text, "  fill", format_args!("{} bytes of {}", ring.fill, ring.capacity));
    match (&ring.damage, ring.undelivered_messages, ring.undelivered_bytes) {
        (Some(damage), ..) => line(text, "  undelivered", format_args!("damaged: {damage}")),
        (None, Some(messages), Some(bytes)) => {
            line(text, "  undelivered", format_args!("{messages} message(s), {bytes} bytes"))
        }
        _ => line(text, "  undelivered", "moves too fast to count"),
    }
    if ring.unseen_close {
        line(text, "  end", "the sender closed; no receiver has seen it yet");
    }
    if let Some(tag) = ring.last_tag {
        line(text, "  last tag", tag);
    }
    line(text, "  producer", role(&ring.producer));
    line(
        text,
        "  consumer",
        format_args!("{}, close seen {}", role(&ring.consumer), ring.consumer.close_seen.unwrap_or(0)),
    );
}

fn describe_topic(topic: &TopicView, text: &mut String) {
    text.push_str("\ntopic\n");
    line(
        text,
        "  data",
        format_args!("{} bytes at {:#x}, aligned to {}", topic.capacity, topic.data_offset, topic.align),
    );
    let used = topic.subscribers.len();
    line(text, "  slots", format_args!("{} at {:#x}, {used} in use", topic.slots, topic.subs_offset));
    let takes = match (topic.lossy_only, topic.may_eject) {
        (true, _) => "lossy and latest ones only",
        (false, true) => "all; reliable ones may be ejected",
        (false, false) => "all",
    };
    line(text, "  takes", takes);
    line(text, "  tail", topic.tail);
    line(text, "  last", topic.last);
    line(text, "  claim", topic.claim);
    match &topic.newest {
        Some(newest) => {
            let published = newest.age_s.map_or_else(String::new, |age_s| {
                format!(", published {} ago", age(std::time::Duration::from_secs_f64(age_s)))
            });
            let (seq, len, type_id, tag) = (newest.seq, newest.len, newest.type_id, newest.tag);
            let said = format!("number {seq}, {len} bytes, type id {type_id:#x}, tag {tag}{published}");
            line(text, "  newest", said);
        }
        None if topic.last == topic.tail => line(text, "  newest", "nothing was published yet"),
        None => line(text, "  newest", "moves too fast to read"),
    }
    if let Some(damage) = &topic.damage {
        line(text, "  damaged", damage);
    }
    let waits = match topic.publisher.eject_after_s {
        Some(s) => format!("ejects after {s} s"),
        None => "waits for reliable subscribers".into(),
    };
    line(text, "  publisher", format_args!("{}, {waits}", role(&topic.publisher.role)));
    let (reliable, lossy, latest) = (topic.reliable, topic.lossy, topic.latest);
    line(text, "  subscribers", format_args!("{reliable} reliable, {lossy} lossy, {latest} latest"));
    if topic.subscribers.is_empty() {
        return;
    }
    let mut table = output::table(&["slot", "policy", "label", "process", "behind", "lost", "state"]);
    for one in &topic.subscribers {
        let label = one.label().unwrap_or_else(|| "-".into());
        let (slot, lost) = (one.slot.to_string(), one.lost().map_or_else(|| "-".into(), |lost| lost.to_string()));
        table.add_row([slot, one.policy.into(), label, one.process(), one.lag(), lost, one.state()]);
    }
    text.push('\n');
    text.push_str(&output::render(&table));
}

fn role(role: &RoleView) -> String {
    let mut words = vec![format!("epoch {}", role.epoch)];
    let flags = [
        (role.sleeping, "sleeping"),
        (role.membarrier_capable, "can membarrier"),
        (role.fence_free, "does not fence"),
        (role.closed, "closed"),
    ];
    words.extend(flags.iter().filter(|flag| flag.0).map(|flag| flag.1.to_owned()));
    words.push(format!("flags {:#x}", role.flags));
    words.join(", ")
}
