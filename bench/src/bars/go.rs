//! What the Go port aims at.

use super::Run;
use crate::report::Bar;

pub(super) fn bars(run: &Run<'_>) -> Vec<Bar> {
    let (ring, topic) = ("ring-go", "topic-go");
    let (trip, each, batch) = ("go-rtt-spin", "go-one-way-32-each", "go-one-way-32-batch");
    vec![
        run.time("Go: round trip, 32 B, both polling", trip, ring, "ring", 1.25),
        run.rate("Go: one way, 32 B, each visible at once", each, ring, "ring", 0.6),
        run.rate("Go: one way, 32 B, batched", batch, ring, "ring", 0.5),
        run.rate("Go: a topic, one way, 32 B, each visible at once", each, topic, ring, 0.9),
        run.rate("Go: a topic, one way, 32 B, batched", batch, topic, ring, 0.9),
        run.time("Go: the newest value, 64 B", "go-latest-64", "latest-go", "topic-latest-into", 3.0),
    ]
}
