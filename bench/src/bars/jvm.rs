//! What the Java and Kotlin ports aim at.

use super::Run;
use crate::report::Bar;

pub(super) fn bars(run: &Run<'_>) -> Vec<Bar> {
    let (java, flow) = ("ring-java", "ring-rust-kotlin");
    let (trip, each, batch) = ("jvm-rtt-spin", "jvm-one-way-32-each", "jvm-one-way-32-batch");
    let spins = "Java: round trip, 32 B, both polling";
    let visible = "Java: one way, 32 B, each visible at once";
    vec![
        run.time(spins, trip, java, "ring", 1.2),
        run.time(spins, trip, java, "aeron-java", 0.9),
        run.time(&format!("{spins}, unguarded"), trip, "ring-unguarded-java", "aeron-tuned-java", 1.0),
        run.time(spins, trip, java, "chronicle-java", 0.7),
        run.rate(visible, each, java, "ring", 0.6),
        run.rate(visible, each, java, "agrona-java", 1.5),
        run.rate("Java: one way, 32 B, batched", batch, java, "ring", 0.5),
        run.rate("Java: one way, 32 B, batched", batch, java, "agrona-java", 2.0),
        run.no_garbage("Java: heap a message", java, &[trip, each, batch]),
        run.rate("Java: a topic, one way, 32 B, each visible at once", each, "topic-java", java, 0.9),
        run.rate("Java: a topic, one way, 32 B, batched", batch, "topic-java", java, 0.9),
        run.no_garbage("Java: a topic, heap a message", "topic-java", &[each, batch]),
        run.time("Java: the newest value, 64 B", "jvm-latest-64", "latest-java", "topic-latest-into", 3.0),
        run.no_garbage("Java: the newest value, heap a read", "latest-java", &["jvm-latest-64"]),
        run.rate("Kotlin: a topic, one way from Rust, Flow", "jvm-from-rust-32-flow", "topic-rust-kotlin", flow, 0.9),
        run.time("Kotlin: the newest value, 64 B", "jvm-latest-64", "latest-kotlin", "topic-latest-into", 3.0),
        run.below("Kotlin: one way from Rust, Flow", "jvm-from-rust-32-flow", flow, "≥ 3 M/s", |figures| {
            (format!("{:.1} M/s", figures.ops_per_s / 1e6), figures.ops_per_s >= 3e6)
        }),
    ]
}
