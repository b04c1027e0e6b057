//! What makes two languages' ports the same format: `conformance/README.md` says how.

pub mod all;
pub mod api;
pub mod folder;
pub mod matrix;
pub mod run;
pub mod speed;
pub mod table;
pub mod vectors;
pub mod work;

/// How many of the languages that miss their toolchain count as failures: all of them where `CI=true`, else none.
pub fn missing_is_failure(missing: usize) -> usize {
    if std::env::var_os("CI").is_some_and(|ci| ci == "true") { missing } else { 0 }
}

/// The last line of a run, as `scripts/test.sh` counts it.
pub fn summary(passed: usize, failed: usize, skipped: usize) -> String {
    let rest = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    format!("{passed} passed, {failed} failed{rest}")
}
