//! macOS has no membarrier: this side always fences, and says so by leaving `can` unset.

/// Never.
pub(crate) fn is_available() -> bool {
    false
}

/// Never asked for, because [`can`] says no.
pub(crate) fn sync() -> bool {
    false
}
