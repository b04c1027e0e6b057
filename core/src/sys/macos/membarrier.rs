//! macOS has no membarrier: this side always fences, and says so in its flags.

/// Never.
pub(crate) fn is_available() -> bool {
    false
}

/// Never asked for, because [`is_available`] says no.
pub(crate) fn sync() -> bool {
    false
}
