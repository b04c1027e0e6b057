//! How the streams stand, on standard error, for `--verbose`.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use ramway_cli::{output, units};

use crate::counters::Counters;
use crate::registry::{Label, Registry};

/// Without a terminal a stream that moves is reported this often; a change of its state at once.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Set once by a program that was started with `--verbose`.
static BARS: OnceLock<MultiProgress> = OnceLock::new();

/// Writes a line above those of the streams, if there are any.
pub(crate) fn line(text: &str) {
    match BARS.get() {
        Some(bars) => bars.suspend(|| output::note(text)),
        None => output::note(text),
    }
}

/// Shows how the streams stand: on a terminal a line for each, written anew every second; else as a log.
#[derive(Debug)]
pub struct Streams {
    terminal: bool,
    seen: BTreeMap<Label, Seen>,
}

#[derive(Debug)]
struct Seen {
    bar: ProgressBar,
    state: &'static str,
    messages: u64,
    bytes: u64,
    at: Instant,
}

impl Streams {
    /// Begins to show them.
    #[must_use]
    pub fn verbose() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bars = MultiProgress::new();
        if !terminal {
            bars.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        }
        let _ = BARS.set(bars);
        Self { terminal, seen: BTreeMap::new() }
    }

    /// To be called every second.
    pub fn update(&mut self, registry: &Registry) {
        let now = Instant::now();
        for (label, counters) in registry.all() {
            let state = state(&counters);
            let (messages, bytes) = (counters.messages.load(Relaxed), counters.bytes.load(Relaxed));
            let is_new = !self.seen.contains_key(&label);
            let seen =
                self.seen.entry(label.clone()).or_insert_with(|| Seen { bar: bar(), state, messages, bytes, at: now });
            let due = seen.messages != messages && now - seen.at >= LINE_EVERY;
            if !(self.terminal || is_new || seen.state != state || due) {
                continue;
            }
            let text = shown(&label, &counters, (seen.messages, seen.bytes), now - seen.at);
            if self.terminal {
                seen.bar.set_message(text)
            } else {
                line(&text)
            }
            (seen.state, seen.messages, seen.bytes, seen.at) = (state, messages, bytes, now);
        }
    }
}

impl Drop for Streams {
    /// The lines stay, as they were last.
    fn drop(&mut self) {
        for seen in self.seen.values() {
            seen.bar.abandon();
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner()
        .with_style(ProgressStyle::with_template("{msg}").expect("a constant that is a template"));
    match BARS.get() {
        Some(bars) => bars.add(bar),
        None => bar,
    }
}

/// Whether the far side answers.
fn state(counters: &Counters) -> &'static str {
    match (counters.streams.load(Relaxed), counters.connected.load(Relaxed)) {
        (0, _) => "ended",
        (_, 0) => "no link",
        _ => "open",
    }
}

/// One stream in one line. `before` are its messages and bytes so long ago.
fn shown(label: &Label, counters: &Counters, before: (u64, u64), ago: Duration) -> String {
    let read = |value: &std::sync::atomic::AtomicU64| value.load(Relaxed);
    let (messages, bytes) = (read(&counters.messages), read(&counters.bytes));
    let seconds = ago.as_secs_f64().max(0.001);
    let rate = |now: u64, then: u64| (now.saturating_sub(then) as f64 / seconds) as u64;
    let mut text = format!(
        "{} {} {}: {}; {messages} messages, {}; {}/s, {}/s",
        label.direction.word(),
        label.kind,
        label.name,
        state(counters),
        units::size(bytes),
        rate(messages, before.0),
        units::size(rate(bytes, before.1)),
    );
    let mut add = |value: u64, what: &str| {
        if value > 0 {
            text.push_str(&format!("; {value} {what}"));
        }
    };
    add(read(&counters.connections), "connections");
    add(read(&counters.refused_connections), "refused");
    add(read(&counters.in_flight), "bytes under way");
    add(read(&counters.lost), "lost");
    add(read(&counters.left_out), "left out");
    add(read(&counters.resumes), "resumed");
    add(read(&counters.possible_duplicates), "possibly twice");
    let round_trip = read(&counters.round_trip_ns);
    if round_trip > 0 {
        text.push_str(&format!("; round trip {}", units::short(Duration::from_nanos(round_trip))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Direction;

    #[test]
    fn a_stream_is_one_line() {
        let label = Label { name: "camera".into(), kind: "topic", direction: Direction::Export, prefix: String::new() };
        let counters = Counters::default();
        for (counter, value) in
            [(&counters.streams, 1), (&counters.connected, 1), (&counters.messages, 30), (&counters.bytes, 30 << 10)]
        {
            counter.store(value, Relaxed);
        }
        let text = shown(&label, &counters, (10, 10 * 1024), Duration::from_secs(2));
        assert_eq!(text, "export topic camera: open; 30 messages, 30 KiB; 10/s, 10 KiB/s");
        counters.lost.store(2, Relaxed);
        counters.round_trip_ns.store(250_000, Relaxed);
        let text = shown(&label, &counters, (30, 30 * 1024), Duration::ZERO);
        assert!(text.ends_with("; 0/s, 0 B/s; 2 lost; round trip 250.0 µs"), "{text}");
    }
}
