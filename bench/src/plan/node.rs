//! Between processes of Node.js, and to and from one in Rust.

use super::{GroupPlan, KIB, MIB, group, newest_value, of};
use crate::case::{Burst, Mode, Test};

/// The language's own floor, Ramway, what Node.js has, another library.
pub(crate) const NODE: &str = "\
    list-node ring-node ring-into-node ring-rust-node ring-node-rust topic-rust-node topic-node-rust latest-node \
    net-node port-node zeromq-node";

/// Messages that are published or received together: as many as `batches()` and `recvBatch()` have by default.
const TOGETHER: u32 = 1024;

pub(super) fn groups() -> Vec<GroupPlan> {
    let title = |what: &str| format!("Node.js: {what}");
    let trip = of(Test::Rtt, Mode::Hybrid, 32);
    let asleep = Burst { mode: Mode::Block, ..trip };
    let each = of(Test::OneWay, Mode::Each, 32);
    let batch = Burst { batch: TOGETHER, count: 4 * u64::from(TOGETHER), ..of(Test::OneWay, Mode::Batch, 32) };
    let awaited = Burst { mode: Mode::Block, ..each };
    // What writes or receives message by message does so beside those that do not.
    let to_rust = "ring-node-rust topic-node-rust net-node";
    let mut groups = vec![
        group("node-rtt-async", &title("round trip, 32 B, in an event loop on each side"), trip)
            .or(asleep)
            .among("ring-node net-node port-node zeromq-node"),
        group("node-rtt-spin", &title("round trip, 32 B, polling in worker threads"), of(Test::Rtt, Mode::Spin, 32))
            .among("ring-node ring-into-node port-node"),
        group("node-one-way-32-each", &title("one way, 32 B, for await over messages"), each)
            .among("list-node ring-rust-node topic-rust-node ring-node net-node port-node zeromq-node")
            .floor("list-node"),
        group("node-one-way-32-batch", &title("one way, 32 B, for await over batches"), batch)
            .or(each)
            .among("list-node ring-rust-node topic-rust-node ring-node net-node")
            .floor("list-node"),
        group("node-to-rust-32-each", &title("one way, 32 B, to Rust, trySend of each message"), each).among(to_rust),
        group("node-to-rust-32-batch", &title("one way, 32 B, to Rust, sendBatch"), batch).or(each).among(to_rust),
        group("node-to-rust-32-await", &title("one way, 32 B, to Rust, await send"), awaited).or(each).among(to_rust),
        newest_value("node-latest-64", "Node.js").among("latest-node"),
    ];
    for (id, shown, size) in [("8K", "8 KiB", 8 * KIB), ("8M", "8 MiB", 8 * MIB), ("512M", "512 MiB", 512 * MIB)] {
        let burst = Burst { count: 4, ..of(Test::View, Mode::Spin, size as usize) };
        let what = title(&format!("a frame of {shown}, from asking for it to having it as a Uint8Array"));
        let view = group(&format!("node-view-{id}"), &what, burst);
        groups.push(view.among("ring-node port-node").capacity(size + MIB));
    }
    groups
}
