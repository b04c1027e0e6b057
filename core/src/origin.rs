//! What a handle was opened by: for its errors, and for those who ask.

use std::ffi::{OsStr, OsString};
use std::fmt;

/// Shown as `the ring 'video'`.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// "ring", "bus"; without a name the whole of it.
    what: &'static str,
    name: Option<OsString>,
}

impl Origin {
    pub(crate) fn named(what: &'static str, name: impl Into<OsString>) -> Self {
        Self { what, name: Some(name.into()) }
    }

    pub(crate) const fn unnamed(what: &'static str) -> Self {
        Self { what, name: None }
    }

    pub(crate) fn name(&self) -> Option<&OsStr> {
        self.name.as_deref()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "the {} '{}'", self.what, name.to_string_lossy()),
            None => write!(f, "the {}", self.what),
        }
    }
}
