//! What can be asked of the memory behind a segment's data.

use super::mem::page_size;
use super::os::placement::huge_page_size;
pub(crate) use super::os::placement::{allocate, apply};
use crate::error::Result;

/// What the caller asked of the memory behind the data. The default asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlacementOptions {
    pub(crate) huge_pages: bool,
    pub(crate) lock_memory: bool,
    pub(crate) numa_node: Option<u32>,
    pub(crate) prefault: bool,
}

impl PlacementOptions {
    /// The data's offset and capacity must be multiples of this.
    pub(crate) fn granule(&self) -> Result<usize> {
        if self.huge_pages { huge_page_size() } else { Ok(page_size()) }
    }
}
