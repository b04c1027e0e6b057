//! Options of a region, and how one comes to be.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::Region;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Kind;
use crate::segment::{self, Intent, Link, NamedOptions, Spec};
use crate::sync::AtomicU32;
use crate::sys::mem::{Access, PageMap};
use crate::sys::placement::{self, PlacementOptions};
use crate::wait::{SPIN_MAX, WaitPolicy};

/// What is not the default about a region.
///
/// ```
/// # let name = format!("/dev/shm/ramway-doc-builder-{}", std::process::id());
/// let region = ramway::Region::builder().mode(0o644).prefault(true).create(&name, 10_000)?;
/// let reader = ramway::Region::builder().read_only(true).open(&name)?;
/// assert_eq!((reader.len(), reader.capacity() % 4096), (10_000, 0));
/// assert_eq!(reader.write_at(0, b"x").unwrap_err().kind(), ramway::ErrorKind::PermissionDenied);
/// # Ok::<(), ramway::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing before create, open or open_or_create"]
pub struct RegionBuilder {
    read_only: bool,
    persistent: bool,
    discard: bool,
    allow_disk: bool,
    mode: u32,
    timeout: Duration,
    policy: WaitPolicy,
    placement: PlacementOptions,
}

impl Default for RegionBuilder {
    fn default() -> Self {
        Self {
            read_only: false,
            persistent: false,
            discard: false,
            allow_disk: false,
            mode: segment::DEFAULT_MODE,
            timeout: Duration::ZERO,
            policy: WaitPolicy::default(),
            placement: PlacementOptions::default(),
        }
    }
}

impl RegionBuilder {
    /// Opens without the permission to write. Such a handle cannot notify, and waits by looking every millisecond.
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Leaves the region and its bytes in place when its last user goes, until it is removed by name.
    /// `InvalidArgument` with `open`, which makes none.
    pub fn persistent(mut self, yes: bool) -> Self {
        self.persistent = yes;
        self
    }

    /// Lets `create` throw away a persistent region that nobody uses; `InvalidArgument` with the others.
    pub fn discard(mut self, yes: bool) -> Self {
        self.discard = yes;
        self
    }

    /// Accepts a file on a disk file system. It does not survive a reboot either: the order in which pages are
    /// written back is not ours, so a region of another boot counts as stale.
    pub fn allow_disk(mut self, yes: bool) -> Self {
        self.allow_disk = yes;
        self
    }

    /// Permission bits of a new file, 0o600 by default; not changed by the umask. Another one is
    /// `InvalidArgument` with `open`, which makes none.
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// How long `open` waits for a name that is not there yet; not at all by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How `wait` waits; [`WaitPolicy::Hybrid`] by default.
    pub fn wait_policy(mut self, policy: WaitPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Locks the data in memory, so that it is never swapped out. An error names `RLIMIT_MEMLOCK` if that is in the
    /// way.
    pub fn lock_memory(mut self, yes: bool) -> Self {
        self.placement.lock_memory = yes;
        self
    }

    /// Puts the data into transparent huge pages and checks that it is there, else `Unsupported`, naming the setting
    /// to change. The creator has to ask for them too: it rounds the capacity up to whole huge pages.
    pub fn huge_pages(mut self, yes: bool) -> Self {
        self.placement.huge_pages = yes;
        self
    }

    /// Places the data on this NUMA node on creation. A handle that opens only checks that it is there.
    pub fn numa_node(mut self, node: u32) -> Self {
        self.placement.numa_node = Some(node);
        self
    }

    /// Maps every page at once, so that no later access is slowed by a page fault.
    pub fn prefault(mut self, yes: bool) -> Self {
        self.placement.prefault = yes;
        self
    }

    /// [`Region::create`] with these options.
    ///
    /// # Errors
    /// As for [`Region::create`]; `InvalidArgument` if it is to be read-only; those of the options.
    pub fn create(&self, name: impl AsRef<OsStr>, len: u64) -> Result<Region> {
        self.make(name.as_ref(), Intent::Create, Some(len), &|| true)
    }

    /// [`Region::open`] with these options.
    ///
    /// # Errors
    /// As for [`Region::open`]; those of the options.
    pub fn open(&self, name: impl AsRef<OsStr>) -> Result<Region> {
        self.make(name.as_ref(), Intent::Open, None, &|| true)
    }

    /// [`open`](Self::open) for languages that have signals to look after: asks `go_on` every 10 ms while it waits, and
    /// gives `Interrupted` once it says no.
    #[doc(hidden)]
    pub fn open_while(&self, name: impl AsRef<OsStr>, go_on: &dyn Fn() -> bool) -> Result<Region> {
        self.make(name.as_ref(), Intent::Open, None, go_on)
    }

    /// [`Region::open_or_create`] with these options.
    ///
    /// # Errors
    /// As for [`Region::open_or_create`]; `InvalidArgument` if it is to be read-only; those of the options.
    pub fn open_or_create(&self, name: impl AsRef<OsStr>, len: u64) -> Result<Region> {
        self.make(name.as_ref(), Intent::OpenOrCreate, Some(len), &|| true)
    }

    fn make(&self, name: &OsStr, intent: Intent, len: Option<u64>, go_on: &dyn Fn() -> bool) -> Result<Region> {
        if self.read_only && intent != Intent::Open {
            let text = format!("creating the region '{}' read-only: nobody could fill it", name.display());
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        let context = |e: Error| e.context(format_args!("region '{}'", name.display()));
        segment::refuse_idle(Some(intent), self.discard, self.persistent, self.mode).map_err(context)?;
        let spec = match len {
            Some(len) => {
                let granule = self.placement.granule().map_err(context)?;
                Some(Spec::region(len, granule).map_err(context)?.persistent(self.persistent).named())
            }
            None => None,
        };
        let access = if self.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let check = |valid: &segment::Valid| match (len, valid.region) {
            (Some(asked), Some(found)) if asked != found.len => {
                let text = format!("it is there with {} bytes, not with the {asked} asked for", found.len);
                Err(Error::new(ErrorKind::InvalidArgument, text))
            }
            _ => Ok(()),
        };
        let named = segment::named(
            name,
            &NamedOptions {
                intent,
                kind: Kind::Region,
                spec,
                check: &check,
                role_byte: None,
                access,
                discard: self.discard,
                mode: self.mode,
                timeout: self.timeout,
                go_on,
                allow_disk: self.allow_disk,
                placement: self.placement,
            },
        )?;
        let geometry = named.valid.region.expect("validated as a region");
        let len = usize::try_from(geometry.capacity).map_err(|_| context(Error::os(libc::ENOMEM, "mapping")))?;
        let data = PageMap::map(named.file.as_fd(), geometry.data_offset, len, access).map_err(context)?;
        // SAFETY: `data` is a mapping of `len` bytes, with this access, and lives on.
        unsafe { placement::apply(data.as_ptr(), len, 1, !self.read_only, &self.placement) }.map_err(context)?;
        let region = Region {
            data: Arc::new(data),
            block: named.header.region_block(),
            header: named.header,
            geometry,
            writable: !self.read_only,
            policy: self.policy,
            seen: AtomicU32::new(0),
            budget: AtomicU32::new(SPIN_MAX),
            readiness: OnceLock::new(),
            fork: named.entry,
            link: Link::Named(named.link),
        };
        // What was notified before now is not news to this handle.
        region.try_wait()?;
        Ok(region)
    }
}
