//! The word that a descriptor waits on.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::segment::HeaderMap;
use crate::sync::AtomicU32;

/// A word in a header page that it keeps mapped.
#[derive(Clone)]
pub(crate) struct MappedWord {
    word: NonNull<AtomicU32>,
    _header: Arc<HeaderMap>,
}

// SAFETY: points to an atomic in a mapping that `_header` keeps and that has no affinity to a thread.
unsafe impl Send for MappedWord {}
// SAFETY: as above.
unsafe impl Sync for MappedWord {}

impl MappedWord {
    /// # Safety
    /// `word` lies in `header`'s mapping.
    pub(crate) unsafe fn new(word: &AtomicU32, header: Arc<HeaderMap>) -> Self {
        Self { word: word.into(), _header: header }
    }

    /// For the kernel.
    #[cfg(target_os = "linux")]
    pub(super) fn as_ptr(&self) -> *mut u32 {
        self.word.as_ptr().cast()
    }
}

impl Deref for MappedWord {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        // SAFETY: mapped as long as `self` lives, by the contract of `new`.
        unsafe { self.word.as_ref() }
    }
}
