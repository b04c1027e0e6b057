//! Between C# processes, and the newest value from one in Rust.

use super::{GroupPlan, between_two, newest_value};

/// Ramway.
pub(crate) const CSHARP: &str = "ring-csharp topic-csharp latest-csharp";

pub(super) fn groups() -> Vec<GroupPlan> {
    let mut groups = between_two("csharp", "C#", "ring ring-csharp", "ring ring-csharp topic-csharp");
    groups.push(newest_value("csharp-latest-64", "C#").among("latest-csharp"));
    groups
}
