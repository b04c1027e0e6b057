//! Between C# processes.

use super::{GroupPlan, group, of};
use crate::case::{Mode, Test};

/// Ramway.
pub(crate) const CSHARP: &str = "ring-csharp";

pub(super) fn groups() -> Vec<GroupPlan> {
    let title = |what: &str| format!("C#: {what}");
    // The ring between two processes of Rust beside it, in the same rounds.
    let both = |id: &str, what: &str, burst| group(id, &title(what), burst).among("ring ring-csharp").floor("ring");
    vec![
        both("csharp-rtt-spin", "round trip, 32 B, both sides polling", of(Test::Rtt, Mode::Spin, 32)),
        both(
            "csharp-one-way-32-each",
            "one way, 32 B, every message visible at once",
            of(Test::OneWay, Mode::Each, 32),
        ),
        both("csharp-one-way-32-batch", "one way, 32 B, 32 together", of(Test::OneWay, Mode::Batch, 32)),
    ]
}
