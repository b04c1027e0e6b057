//! Between Java processes, to and from one in Rust, and into a Flow of Kotlin's.

use super::{GroupPlan, group, newest_value, of};
use crate::case::{Mode, Test};

/// Ramway, and what Java has for the purpose.
pub(crate) const JVM: &str = "\
    ring-java ring-unguarded-java ring-rust-java ring-java-rust ring-rust-kotlin topic-java topic-rust-kotlin latest-java \
    latest-kotlin flow-kotlin aeron-java aeron-tuned-java chronicle-java agrona-java agrona-tuned-java";

pub(super) fn groups() -> Vec<GroupPlan> {
    let title = |what: &str| format!("Java: {what}");
    // The ring between two processes of Rust beside them, in the same rounds.
    let all = "\
        ring ring-java ring-unguarded-java aeron-java aeron-tuned-java chronicle-java agrona-java agrona-tuned-java";
    let streams = "\
        ring ring-java ring-unguarded-java topic-java ring-rust-java ring-java-rust aeron-java aeron-tuned-java chronicle-java \
        agrona-java agrona-tuned-java";
    let each = of(Test::OneWay, Mode::Each, 32);
    vec![
        group("jvm-rtt-spin", &title("round trip, 32 B, both sides polling"), of(Test::Rtt, Mode::Spin, 32))
            .among(all)
            .floor("ring"),
        group("jvm-one-way-32-each", &title("one way, 32 B, every message visible at once"), each)
            .among(streams)
            .floor("ring"),
        group("jvm-one-way-32-batch", &title("one way, 32 B, 32 together"), of(Test::OneWay, Mode::Batch, 32))
            .among(streams)
            .floor("ring"),
        group("jvm-from-rust-32-flow", "Kotlin: one way, 32 B, from Rust, collected from a Flow", each)
            .among("ring-rust-kotlin topic-rust-kotlin ring-rust-java flow-kotlin")
            .floor("flow-kotlin"),
        newest_value("jvm-latest-64", "Java, Kotlin").among("latest-java latest-kotlin"),
    ]
}
