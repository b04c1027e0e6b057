//! Between Java processes, to and from one in Rust, and into a Flow of Kotlin's.

use super::{GroupPlan, between_two, group, newest_value, of};
use crate::case::{Mode, Test};

/// Ramway, and what Java has for the purpose.
pub(crate) const JVM: &str = "\
    ring-java ring-unguarded-java ring-rust-java ring-java-rust ring-rust-kotlin topic-java topic-rust-kotlin latest-java \
    latest-kotlin flow-kotlin aeron-java aeron-tuned-java chronicle-java agrona-java agrona-tuned-java";

pub(super) fn groups() -> Vec<GroupPlan> {
    let all = "\
        ring ring-java ring-unguarded-java aeron-java aeron-tuned-java chronicle-java agrona-java agrona-tuned-java";
    let streams = "\
        ring ring-java ring-unguarded-java topic-java ring-rust-java ring-java-rust aeron-java aeron-tuned-java chronicle-java \
        agrona-java agrona-tuned-java";
    let each = of(Test::OneWay, Mode::Each, 32);
    let mut groups = between_two("jvm", "Java", all, streams);
    groups.push(
        group("jvm-from-rust-32-flow", "Kotlin: one way, 32 B, from Rust, collected from a Flow", each)
            .among("ring-rust-kotlin topic-rust-kotlin ring-rust-java flow-kotlin")
            .floor("flow-kotlin"),
    );
    groups.push(newest_value("jvm-latest-64", "Java, Kotlin").among("latest-java latest-kotlin"));
    groups
}
