//! Between Go processes, and the newest value from one in Rust.

use super::{GroupPlan, group, newest_value, of};
use crate::case::{Mode, Test};

/// Ramway.
pub(crate) const GO: &str = "ring-go topic-go latest-go";

pub(super) fn groups() -> Vec<GroupPlan> {
    let title = |what: &str| format!("Go: {what}");
    // The ring between two processes of Rust beside them, in the same rounds.
    let streams = "ring ring-go topic-go";
    let each = of(Test::OneWay, Mode::Each, 32);
    vec![
        group("go-rtt-spin", &title("round trip, 32 B, both sides polling"), of(Test::Rtt, Mode::Spin, 32))
            .among("ring ring-go")
            .floor("ring"),
        group("go-one-way-32-each", &title("one way, 32 B, every message visible at once"), each)
            .among(streams)
            .floor("ring"),
        group("go-one-way-32-batch", &title("one way, 32 B, 32 together"), of(Test::OneWay, Mode::Batch, 32))
            .among(streams)
            .floor("ring"),
        newest_value("go-latest-64", "Go").among("latest-go"),
    ]
}
