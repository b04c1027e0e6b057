//! What the npm package aims at.

use super::{Run, duration};
use crate::report::Bar;

pub(super) fn bars(run: &Run<'_>) -> Vec<Bar> {
    let (ring, into, net) = ("ring-node", "ring-into-node", "net-node");
    let (from_rust, to_rust) = ("ring-rust-node", "ring-node-rust");
    let (subscriber, publisher) = ("topic-rust-node", "topic-node-rust");
    let per_second = |what: &str, group: &str, mechanism: &str, least: f64| {
        run.below(what, group, mechanism, &format!("≥ {least} M/s"), |figures| {
            (format!("{:.1} M/s", figures.ops_per_s / 1e6), figures.ops_per_s >= least * 1e6)
        })
    };
    let within = |what: &str, group: &str, mechanism: &str, bar_is: &str, most_ns: f64| {
        run.below(what, group, mechanism, bar_is, |figures| (duration(figures.ns.p50), figures.ns.p50 <= most_ns))
    };
    let view = |size: &str, group: &str| {
        within(&format!("Node.js: a frame of {size} as a Uint8Array"), group, ring, "≤ 10 µs", 10_000.0)
    };
    let (each, batch) = ("node-one-way-32-each", "node-one-way-32-batch");
    let (messages, batches) =
        ("Node.js: one way from Rust, for await over messages", "Node.js: one way from Rust, for await over batches");
    vec![
        per_second(batches, batch, from_rust, 5.0),
        run.rate(batches, batch, from_rust, net, 20.0),
        per_second(messages, each, from_rust, 1.5),
        run.rate(messages, each, from_rust, net, 6.0),
        run.time("Node.js: round trip, 32 B, async on both sides", "node-rtt-async", ring, net, 0.4),
        within("Node.js: round trip, 32 B, polling in workers, recvIntoSync", "node-rtt-spin", into, "≤ 1 µs", 1000.0),
        within("Node.js: the same with recvSync and data", "node-rtt-spin", ring, "≤ 1 µs", 1000.0),
        view("8 KiB", "node-view-8K"),
        view("8 MiB", "node-view-8M"),
        view("512 MiB", "node-view-512M"),
        per_second("Node.js: one way to Rust, trySend", "node-to-rust-32-each", to_rust, 5.0),
        per_second("Node.js: one way to Rust, sendBatch", "node-to-rust-32-batch", to_rust, 5.0),
        run.rate("Node.js: a topic from Rust, for await over messages", each, subscriber, from_rust, 0.9),
        run.rate("Node.js: a topic from Rust, for await over batches", batch, subscriber, from_rust, 0.9),
        run.rate("Node.js: a topic to Rust, trySend", "node-to-rust-32-each", publisher, to_rust, 0.9),
        run.rate("Node.js: a topic to Rust, sendBatch", "node-to-rust-32-batch", publisher, to_rust, 0.9),
        within("Node.js: the newest value, 64 B", "node-latest-64", "latest-node", "≤ 250 ns", 250.0),
    ]
}
