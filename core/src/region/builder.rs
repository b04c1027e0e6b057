//! Options of a region, and how one comes to be.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};

use super::Region;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Kind;
use crate::segment::{self, Intent, Link, Request, SegmentOptions, Spec, segment_options};
use crate::sync::AtomicU32;
use crate::sys::mem::{Access, PageMap};
use crate::sys::placement;
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
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing before create, open or open_or_create"]
pub struct RegionBuilder {
    read_only: bool,
    segment: SegmentOptions,
    policy: WaitPolicy,
}

impl RegionBuilder {
    segment_options!();

    /// Opens without the permission to write. Such a handle cannot notify, and polls every millisecond while it waits.
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// How `wait` waits; [`WaitPolicy::Hybrid`] by default.
    pub fn wait_policy(mut self, policy: WaitPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// [`Region::create`] with these options.
    ///
    /// # Errors
    /// As for [`Region::create`]; `InvalidArgument` if it is to be read-only; those of the options.
    pub fn create(&self, name: impl AsRef<OsStr>, len: u64) -> Result<Region> {
        self.create_while(name, len, &|| true)
    }

    /// [`create`](Self::create) as [`open_while`](Self::open_while) is to `open`.
    #[doc(hidden)]
    pub fn create_while(&self, name: impl AsRef<OsStr>, len: u64, go_on: &dyn Fn() -> bool) -> Result<Region> {
        self.make(name.as_ref(), Intent::Create, Some(len), go_on)
    }

    /// [`Region::open`] with these options.
    ///
    /// # Errors
    /// As for [`Region::open`]; those of the options.
    pub fn open(&self, name: impl AsRef<OsStr>) -> Result<Region> {
        self.open_while(name, &|| true)
    }

    /// [`open`](Self::open) for languages that have signals to handle: asks `go_on` every 10 ms while it waits, and
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
        self.open_or_create_while(name, len, &|| true)
    }

    /// [`open_or_create`](Self::open_or_create) as [`open_while`](Self::open_while) is to `open`.
    #[doc(hidden)]
    pub fn open_or_create_while(&self, name: impl AsRef<OsStr>, len: u64, go_on: &dyn Fn() -> bool) -> Result<Region> {
        self.make(name.as_ref(), Intent::OpenOrCreate, Some(len), go_on)
    }

    fn make(&self, name: &OsStr, intent: Intent, len: Option<u64>, go_on: &dyn Fn() -> bool) -> Result<Region> {
        if self.read_only && intent != Intent::Open {
            let text = format!(
                "creating the region '{}' read-only: nobody could write it; leave read_only out, or open an existing region",
                name.display()
            );
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        let context = |e: Error| e.context(format_args!("region '{}'", name.display()));
        self.segment.check(Some(intent)).map_err(context)?;
        let spec = match len {
            Some(len) => {
                let granule = self.segment.placement.granule().map_err(context)?;
                Some(Spec::region(len, granule).map_err(context)?.persistent(self.segment.persistent).named())
            }
            None => None,
        };
        let access = if self.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let check = |valid: &segment::Valid| match (len, valid.region) {
            (Some(asked), Some(found)) if asked != found.len => {
                let text =
                    format!("it exists with {} bytes, expected {asked}: ask for its length, or open it", found.len);
                Err(Error::new(ErrorKind::InvalidArgument, text))
            }
            _ => Ok(()),
        };
        let named = segment::named(
            name,
            &Request {
                intent,
                kind: Kind::Region,
                spec,
                check: &check,
                role_byte: None,
                access,
                options: &self.segment,
                go_on,
            },
        )?;
        let geometry = named.valid.region.expect("validated as a region");
        let len = usize::try_from(geometry.capacity).map_err(|_| context(Error::os(libc::ENOMEM, "mapping")))?;
        let data = PageMap::map(named.file.as_fd(), geometry.data_offset, len, access).map_err(context)?;
        // SAFETY: `data` is a mapping of `len` bytes, with this access, and lives on.
        unsafe { placement::apply(data.as_ptr(), len, 1, !self.read_only, &self.segment.placement) }
            .map_err(context)?;
        let region = Region {
            data: Arc::new(data),
            block: named.header.region_block(),
            header: named.header,
            geometry,
            writable: !self.read_only,
            policy: self.policy,
            seen: AtomicU32::new(0),
            budget: AtomicU32::new(SPIN_MAX),
            handle: OnceLock::new(),
            readiness: OnceLock::new(),
            fork: named.link.entry().clone(),
            link: Link::Named(named.link),
        };
        // What was notified before now does not end the first wait.
        region.try_wait()?;
        Ok(region)
    }
}
