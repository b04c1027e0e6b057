//! Between Go processes, and the newest value from one in Rust.

use super::{GroupPlan, between_two, newest_value};

/// Ramway.
pub(crate) const GO: &str = "ring-go topic-go latest-go";

pub(super) fn groups() -> Vec<GroupPlan> {
    let mut groups = between_two("go", "Go", "ring ring-go", "ring ring-go topic-go");
    groups.push(newest_value("go-latest-64", "Go").among("latest-go"));
    groups
}
