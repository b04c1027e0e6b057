//! What the C# port aims at.

use super::Run;
use crate::report::Bar;

pub(super) fn bars(run: &Run<'_>) -> Vec<Bar> {
    let ring = "ring-csharp";
    let (trip, each, batch) = ("csharp-rtt-spin", "csharp-one-way-32-each", "csharp-one-way-32-batch");
    vec![
        run.time("C#: round trip, 32 B, both polling", trip, ring, "ring", 1.3),
        run.rate("C#: one way, 32 B, each visible at once", each, ring, "ring", 0.5),
        run.rate("C#: one way, 32 B, batched", batch, ring, "ring", 0.5),
        run.no_garbage("C#: heap a message", ring, &[trip, each, batch]),
    ]
}
