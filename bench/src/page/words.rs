//! What a group measures, in a sentence; where it belongs in the navigation; a machine's fields as people name them.

use super::format::{self, escape, size, time};
use crate::case::{Mode, Test};
use crate::channel::Kind;
use crate::report::{Group, Settings};
use serde_json::Value;

/// One sentence or two: what one value of the table is.
pub(super) fn sentence(group: &Group) -> String {
    let span = |ns: u64| {
        let (number, unit) = time(ns as f64);
        format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
    };
    let work = match group.work_ns {
        0 => String::new(),
        ns => format!(" The receiver works {} on each.", span(ns)),
    };
    let waiting = match group.mode {
        Mode::Spin => "Both sides poll.",
        Mode::Block => "A side that waits sleeps at once.",
        Mode::Hybrid => "A side that waits polls for a while, then sleeps: the default.",
        Mode::Each => "Every message is published and released by itself.",
        Mode::Batch => "Several messages are published together, and all that has arrived is released together.",
    };
    let what = match group.test {
        Test::Rtt => {
            "A message there and its echo back; the next one goes when the echo is there, so a stall delays what \
             follows instead of being counted again."
        }
        Test::OneWay => {
            "Time per message of a stream that one side writes and the other reads, from the first send until the last \
             byte is read and checked."
        }
        Test::Call => {
            "A request of 32 B there and its reply back. With several calls under way it is the time from one reply to the next, else the \
             next call begins when the reply is there, so a stall delays what follows instead of being counted again."
        }
        Test::Wake => "From just before the wake-up call to the sleeper running.",
        Test::Paced => {
            let gap = span(group.gap_ns);
            return format!(
                "Messages {gap} apart, timed from the moment a message was due, so that a sender held up by the receiver \
                 counts too. {waiting}{work}"
            );
        }
        Test::Bursty => {
            let gap = span(group.gap_ns);
            return format!(
                "A burst of messages every {gap}, each timed from the moment its burst was due. {waiting}{work}"
            );
        }
        Test::Pauses => {
            let gap = span(group.gap_ns);
            return format!(
                "Round trips after random pauses of up to {gap}: one that takes more than 20 ms is a lost wake-up, \
                 counted as a stall. {waiting}"
            );
        }
        Test::Idle => return "Processor time of a receiver that waits and gets nothing.".into(),
        Test::View => {
            return "From asking for a message that is there to having it as an array with its shape and type: the time of \
                    the call, whatever the size."
                .into();
        }
        Test::SequentialRead => return "The region's bytes, read word by word from the first to the last.".into(),
        Test::SequentialWrite => return "The region's bytes, written word by word from the first to the last.".into(),
        Test::RandomRead => {
            return "One word of each 4 KiB of the region, read in an order that no prefetcher foresees.".into();
        }
        Test::PoolGet | Test::PoolAlternate | Test::PoolMixed | Test::PoolPipeline | Test::PoolHeld => {
            return buffers(group.test).into();
        }
        Test::Readers | Test::Publish | Test::Lapped | Test::Latest | Test::WakeAll | Test::Producers => {
            return fan(group, &span);
        }
    };
    format!("{what} {waiting}{work}")
}

/// The same for pools of buffers, whose groups have no sides.
fn buffers(test: Test) -> &'static str {
    match test {
        Test::PoolAlternate => "A buffer is got and dropped, from one pool and from another in turn, on one thread.",
        Test::PoolMixed => {
            "Each thread has some buffers, drops one and gets the next: the time of all threads together, by the number of \
             buffers. How many the slowest thread got, by the mean of all, is below. Threads run where the scheduler puts them."
        }
        Test::PoolPipeline => {
            "One thread gets buffers and hands them over, another one drops them, up to 64 on their way: the time of both \
             together, by the number of buffers, with what the way itself takes."
        }
        Test::PoolHeld => {
            "A random buffer is dropped and another one got; below is the memory held by the memory asked for, of both the \
             peak and the mean. Of a pool it is its allocations; of the allocator what it has from the system. The times are \
             those of looking too."
        }
        _ => {
            "A buffer is got and dropped, and nothing written to it: a time is that of one thread's operation, the rate that \
             of all. Before it is timed each pool is asked whether every buffer has one owner and all its room."
        }
    }
}

/// The same for one writer and several readers, or one that it does not wait for.
fn fan(group: &Group, span: &dyn Fn(u64) -> String) -> String {
    match group.test {
        Test::Readers => {
            "Time per message of a stream to several readers, from the first send until the last of them has read and checked \
             every byte. Readers run where the scheduler puts them, which has more of them than processors to place; what the \
             slowest got by the mean of all is below."
                .into()
        }
        Test::Publish => {
            "Time per message at the publisher, with subscribers attached that read nothing meanwhile. Where it would wait for \
             them, they skip what is there between two pieces of the stream, which is not timed."
                .into()
        }
        Test::Lapped => {
            "Time per message of a stream past a reader that the writer does not wait for: what the reader got, and what it \
             says that it lost, must make what was sent, and no message may be torn. The share that it got is below."
                .into()
        }
        Test::Producers => {
            "Time per message of a stream from several producers at once to one reader, from the first send until it has read and \
             checked every byte. All run where the scheduler puts them, which has more of them than processors to place; how fast \
             the slowest producer got rid of its messages by the mean of all is below."
                .into()
        }
        Test::WakeAll => "From just before the one call that wakes all sleepers to the last of them running.".into(),
        _ => {
            let every = match group.gap_ns {
                0 => "The other process writes without a pause, or not at all.".to_owned(),
                ns => format!("The other process writes one every {}.", span(ns)),
            };
            format!("Time of a read of the newest value, every byte of it read and checked. {every}")
        }
    }
}

/// The navigation's headings.
pub(super) fn family(test: Test) -> &'static str {
    match test {
        Test::Rtt => "Round trip",
        Test::Call => "Calls",
        Test::OneWay => "One way",
        Test::Wake | Test::Paced | Test::Bursty | Test::Pauses | Test::Idle => "Waiting",
        Test::Readers | Test::Publish | Test::Lapped | Test::Latest | Test::WakeAll => "One to many",
        Test::Producers => "Many to one",
        Test::View => "Arrays",
        Test::SequentialRead | Test::SequentialWrite | Test::RandomRead => "Memory access",
        Test::PoolGet | Test::PoolAlternate | Test::PoolMixed | Test::PoolPipeline | Test::PoolHeld => "Buffer pool",
    }
}

/// As the tables spell it.
pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Kernel => "kernel",
        Kind::ByHand => "by hand",
        Kind::Ramway => "Ramway",
        Kind::Peer => "library",
    }
}

/// As class names and data attributes spell it.
pub(super) fn kind_id(kind: Kind) -> &'static str {
    match kind {
        Kind::Kernel => "kernel",
        Kind::ByHand => "by-hand",
        Kind::Ramway => "ramway",
        Kind::Peer => "peer",
    }
}

/// How it was measured, in HTML.
pub(super) fn settings(settings: &Settings) -> String {
    let pinned = match settings.cpus {
        [Some(a), Some(b)] => format!("pinned to processors {a} and {b}"),
        [Some(a), None] | [None, Some(a)] => format!("one process pinned to processor {a}"),
        [None, None] => "placed by the scheduler".into(),
    };
    let mut out = format!("<strong>{}</strong> plan, {pinned}", escape(&settings.plan));
    if settings.realtime {
        out.push_str(", real-time scheduling");
    }
    if !settings.only.is_empty() {
        out.push_str(&format!(", only rows with “{}”", escape(&settings.only.join("”, “"))));
    }
    out
}

/// The fields of a machine that have a better name than their own, in the order of the box.
const FIELDS: [(&str, &str); 15] = [
    ("cpu", "Processor"),
    ("cpus", "Processors to use"),
    ("pinned", "Measured on"),
    ("same_core", "Both in one core"),
    ("memory", "Memory"),
    ("kernel", "Kernel"),
    ("virtualized", "Virtual machine"),
    ("load", "Load before"),
    ("governor", "Frequency governor"),
    ("turbo", "Turbo"),
    ("huge_pages", "Huge pages: memory, shared"),
    ("time_source", "Clock"),
    ("libc", "C library"),
    ("rustc", "Compiler"),
    ("ramway", "Ramway"),
];

/// A machine's fields as (name, value), both plain text. A field that this page has not heard of keeps its own name.
pub(super) fn machine(machine: &Value) -> Vec<(String, String)> {
    let Value::Object(fields) = machine else { return Vec::new() };
    let known = FIELDS.iter().filter_map(|&(key, name)| Some((name.to_owned(), key, fields.get(key)?)));
    let other = fields.iter().filter(|(key, _)| FIELDS.iter().all(|(known, _)| known != key));
    let other = other.map(|(key, value)| (sentence_case(key), key.as_str(), value));
    known.chain(other).filter_map(|(name, key, value)| Some((name, machine_value(key, value)?))).collect()
}

fn machine_value(key: &str, value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.into()),
        Value::Number(number) if key == "memory" || key.ends_with("bytes") => {
            let (number, unit) = format::bytes(number.as_f64()?);
            Some(format!("{number} {unit}"))
        }
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().filter_map(|value| machine_value(key, value)).collect();
            (!values.is_empty()).then(|| values.join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(key, value)| Some(format!("{key} {}", machine_value(key, value)?)));
            Some(fields.collect::<Vec<_>>().join(", "))
        }
    }
}

fn sentence_case(key: &str) -> String {
    let text = key.replace('_', " ");
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The line below a group's sentence.
pub(super) fn circumstances(group: &Group) -> String {
    let mut parts = Vec::new();
    if group.rounds > 0 {
        parts.push(format!("{} rounds", group.rounds));
    }
    if group.capacity > 0 && !matches!(family(group.test), "Memory access" | "Buffer pool") {
        parts.push(format!("{} of buffer", size(group.capacity)));
    }
    if let Some(floor) = &group.floor {
        parts.push(format!("floor: {}", escape(floor)));
    }
    if let Some(ceiling) = &group.ceiling {
        parts.push(format!("ceiling: {}", escape(ceiling)));
    }
    parts.join(" · ")
}
