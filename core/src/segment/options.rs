//! What a named segment can be told, whatever it holds.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::sys::placement::PlacementOptions;

/// What may happen to the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Create,
    Open,
    OpenOrCreate,
}

/// The permissions of a new file if nobody says otherwise.
const DEFAULT_MODE: u32 = 0o600;

/// The options that rings and regions share.
#[derive(Clone, Debug)]
pub(crate) struct SegmentOptions {
    /// `Create` only: undelivered messages and persistence of a dead segment are no obstacle.
    pub(crate) discard: bool,
    /// The last user leaves the name in place.
    pub(crate) persistent: bool,
    /// Permissions of a new file.
    pub(crate) mode: u32,
    /// How long to wait for a name that is not there, or for a role that is taken.
    pub(crate) timeout: Duration,
    /// Whether a file on a disk will do.
    pub(crate) allow_disk: bool,
    pub(crate) placement: PlacementOptions,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self {
            discard: false,
            persistent: false,
            mode: DEFAULT_MODE,
            timeout: Duration::ZERO,
            allow_disk: false,
            placement: PlacementOptions::default(),
        }
    }
}

impl SegmentOptions {
    /// Refuses what would be passed over in silence. `intent` is `None` for a segment without a name.
    pub(crate) fn check(&self, intent: Option<Intent>) -> Result<()> {
        let creates = matches!(intent, Some(Intent::Create | Intent::OpenOrCreate));
        let text = if self.discard && intent != Some(Intent::Create) {
            "discard applies to create only; open and open_or_create take what is there"
        } else if self.persistent && !creates {
            "persistent applies to what is made with a name; say it with create or open_or_create"
        } else if self.mode != DEFAULT_MODE && !creates {
            "mode applies to what is made with a name; say it with create or open_or_create"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidArgument, text))
    }
}

/// The methods of a builder that set its [`SegmentOptions`], the field `segment`.
macro_rules! segment_options {
    () => {
        /// Lets `create` throw away what dead processes left: undelivered messages, a damaged or a persistent segment.
        /// Never what somebody uses. `InvalidArgument` with any other beginning.
        pub fn discard(mut self, yes: bool) -> Self {
            self.segment.discard = yes;
            self
        }

        /// A new segment keeps its name and its bytes when its last user goes, until it is removed by name.
        /// `InvalidArgument` where none is made with a name.
        pub fn persistent(mut self, yes: bool) -> Self {
            self.segment.persistent = yes;
            self
        }

        /// Permission bits of a new file, exactly, whatever the umask; default `0o600`. Another mode is `InvalidArgument`
        /// where no file is made with a name.
        pub fn mode(mut self, mode: u32) -> Self {
            self.segment.mode = mode;
            self
        }

        /// How long to wait for a name that is not there yet (`open`), or for a role that is taken: a supervisor may be
        /// faster than the kernel is with a process that was killed. Default 0; `Duration::MAX` is as long as it takes.
        /// Independently of it, races with others who create or remove the same name are retried for up to a second.
        pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
            self.segment.timeout = timeout;
            self
        }

        /// Accepts a file on a disk file system. The kernel writes its pages back in an order of its own, so a segment of
        /// another boot is stale there too.
        pub fn allow_disk(mut self, yes: bool) -> Self {
            self.segment.allow_disk = yes;
            self
        }

        /// Locks the data in memory (`mlock`), so that it is never swapped out. An error names `RLIMIT_MEMLOCK` if that
        /// is in the way.
        pub fn lock_memory(mut self, yes: bool) -> Self {
            self.segment.placement.lock_memory = yes;
            self
        }

        /// Puts the data into transparent huge pages and checks that it is there, else `Unsupported`, naming the setting
        /// to change. The creator has to ask for them too: the data is then made of whole huge pages.
        pub fn huge_pages(mut self, yes: bool) -> Self {
            self.segment.placement.huge_pages = yes;
            self
        }

        /// Places the data on this NUMA node on creation. A handle that opens only checks that it is there.
        pub fn numa_node(mut self, node: u32) -> Self {
            self.segment.placement.numa_node = Some(node);
            self
        }

        /// Maps every page at once, so that no later access is slowed by a page fault.
        pub fn prefault(mut self, yes: bool) -> Self {
            self.segment.placement.prefault = yes;
            self
        }
    };
}
pub(crate) use segment_options;
