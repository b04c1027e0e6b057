//! What the C# port aims at.

use super::Run;
use crate::report::Bar;

pub(super) fn bars(run: &Run<'_>) -> Vec<Bar> {
    let (ring, topic) = ("ring-csharp", "topic-csharp");
    let (trip, each, batch) = ("csharp-rtt-spin", "csharp-one-way-32-each", "csharp-one-way-32-batch");
    vec![
        run.time("C#: round trip, 32 B, both polling", trip, ring, "ring", 1.3),
        run.rate("C#: one way, 32 B, each visible at once", each, ring, "ring", 0.5),
        run.rate("C#: one way, 32 B, batched", batch, ring, "ring", 0.5),
        run.no_garbage("C#: heap a message", ring, &[trip, each, batch]),
        run.rate("C#: a topic, one way, 32 B, each visible at once", each, topic, ring, 0.9),
        run.rate("C#: a topic, one way, 32 B, batched", batch, topic, ring, 0.9),
        run.no_garbage("C#: a topic, heap a message", topic, &[each, batch]),
        run.time("C#: the newest value, 64 B", "csharp-latest-64", "latest-csharp", "topic-latest-into", 3.0),
        run.no_garbage("C#: the newest value, heap a read", "latest-csharp", &["csharp-latest-64"]),
    ]
}
