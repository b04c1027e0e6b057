//! Named shared bytes that many processes read and write, with a notification that costs nothing when nobody waits.

mod builder;
pub(crate) mod bytes;
mod waiting;
pub(crate) mod word;

use std::ffi::OsStr;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

pub use builder::RegionBuilder;

use crate::error::{Error, ErrorKind, Result};
use crate::layout::RegionBlock;
use crate::ready::Readiness;
use crate::segment::{HeaderMap, Link, RegionGeometry};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::fork;
use crate::sys::mem::PageMap;
use crate::wait::WaitPolicy;

/// A stretch of named memory that any number of processes have mapped.
///
/// Ramway brings no order into what they write: use [`atomic_u32`](Self::atomic_u32) and
/// [`atomic_u64`](Self::atomic_u64) for what needs one, or [`notify`](Self::notify) and [`wait`](Self::wait): what
/// was written before a `notify` is seen after the `wait` that it ended.
///
/// All calls may be made from any thread. A handle remembers which notifications its `wait` has returned for; threads
/// that must each see every notification open a handle each, or use [`wait_since`](Self::wait_since).
///
/// In a child made by `fork` every call is `Detached`; addresses taken before stay readable.
///
/// ```
/// # let name = format!("/dev/shm/ramway-doc-region-{}", std::process::id());
/// let writer = ramway::Region::create(&name, 100)?;
/// let reader = ramway::Region::open(&name)?; // in another process, say
///
/// writer.write_at(10, b"hello")?;
/// writer.notify()?;
///
/// assert!(reader.wait(None)?);
/// let mut bytes = [0; 5];
/// reader.read_at(10, &mut bytes)?;
/// assert_eq!(&bytes, b"hello");
/// # Ok::<(), ramway::Error>(())
/// ```
pub struct Region {
    data: Arc<PageMap>,
    /// Points into `header`.
    block: NonNull<RegionBlock>,
    header: Arc<HeaderMap>,
    geometry: RegionGeometry,
    writable: bool,
    policy: WaitPolicy,
    /// The count that the last `wait` or `try_wait` returned for.
    seen: AtomicU32,
    /// Polls before sleeping; follows how long waits have lasted.
    budget: AtomicU32,
    /// The number of this handle among those of the process, once it was asked for: see `select/`.
    pub(crate) handle: OnceLock<std::num::NonZeroU64>,
    /// The descriptor for event loops, once it was asked for. Goes before the locks that it asks about.
    readiness: OnceLock<Readiness>,
    fork: fork::Entry,
    /// Last: it releases the name.
    link: Link,
}

// SAFETY: `block` points into `header`, which lives as long; both mappings and the link have no affinity to a thread.
unsafe impl Send for Region {}
// SAFETY: as above; everything behind `&Region` is atomic.
unsafe impl Sync for Region {}

impl Region {
    /// Makes a region of `len` bytes, all zero. It lives until its last handle is gone, in any process. (A last
    /// one whose user may not write the file cannot take the name away: the region then stays, stale, until somebody
    /// creates it anew or `ramway clean` comes by.)
    ///
    /// `name` is `[A-Za-z0-9._-]{1,80}`, not starting with a dot, in `RAMWAY_DIR`; with a `/` it is a path.
    ///
    /// # Errors
    /// `InvalidArgument` for a `len` of 0 or an impossible name, `AlreadyExists` if the name is in use, `NoSpace` if
    /// there is not enough memory.
    pub fn create(name: impl AsRef<OsStr>, len: u64) -> Result<Self> {
        Self::builder().create(name, len)
    }

    /// Opens the region of that name, for reading and writing.
    ///
    /// # Errors
    /// `NotFound` if nothing has this name, `PermissionDenied`, `AbiMismatch` if it is something else.
    pub fn open(name: impl AsRef<OsStr>) -> Result<Self> {
        Self::builder().open(name)
    }

    /// Opens the region of that name, or makes it.
    ///
    /// # Errors
    /// As [`create`](Self::create) and [`open`](Self::open); `InvalidArgument` if it is there with another length.
    pub fn open_or_create(name: impl AsRef<OsStr>, len: u64) -> Result<Self> {
        Self::builder().open_or_create(name, len)
    }

    /// For everything that is not the default: read-only, persistent, huge pages and so on.
    pub fn builder() -> RegionBuilder {
        RegionBuilder::default()
    }

    /// The length that it was created with, in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a region of length 0 cannot exist")]
    pub fn len(&self) -> u64 {
        self.geometry.len
    }

    /// The bytes that are mapped: the length rounded up to a page, or to a huge page.
    pub fn capacity(&self) -> u64 {
        self.geometry.capacity
    }

    /// Whether this handle may not write.
    pub fn is_read_only(&self) -> bool {
        !self.writable
    }

    /// The address of the first byte, at the start of a page, valid for [`capacity`](Self::capacity) bytes while this
    /// handle lives. Writing through it needs a handle that is not read-only, and is as unordered as any plain access
    /// that others race with.
    pub fn as_ptr(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    /// Keeps the [bytes](Self::as_ptr) mapped when this handle is gone, and nothing else of it: for languages that
    /// cannot take a view back.
    #[doc(hidden)]
    pub fn mapping(&self) -> Arc<dyn std::any::Any + Send + Sync> {
        self.data.clone()
    }

    /// Copies bytes out, from `offset` on. Others may write meanwhile: each aligned 8-byte word comes out whole, but
    /// one word may be new and the next one old.
    ///
    /// # Errors
    /// `InvalidArgument` if the range does not lie within [`len`](Self::len); `Detached`.
    pub fn read_at(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        self.attached()?;
        let range = self.range(offset, to.len())?;
        // SAFETY: the range is mapped; slices of it exist only under the rules of `as_slice` and `as_mut_slice`.
        unsafe { bytes::load(self.data.as_ptr().add(range.start), to) };
        Ok(())
    }

    /// Copies bytes in, from `offset` on. To others each aligned 8-byte word appears whole, in no particular order.
    ///
    /// # Errors
    /// `InvalidArgument` if the range does not lie within [`len`](Self::len); `PermissionDenied` on a read-only
    /// handle; `Detached`.
    pub fn write_at(&self, offset: u64, from: &[u8]) -> Result<()> {
        self.writing("write_at")?;
        let range = self.range(offset, from.len())?;
        // SAFETY: as in `read_at`, and writable.
        unsafe { bytes::store(self.data.as_ptr().add(range.start), from) };
        Ok(())
    }

    /// The 4 bytes at `offset`, as an atomic that all processes share.
    ///
    /// # Errors
    /// `InvalidArgument` if `offset` is not a multiple of 4 or the bytes do not lie within [`len`](Self::len);
    /// `PermissionDenied` on a read-only handle, where a store would be a fault (use
    /// [`load_u32`](Self::load_u32)); `Detached`.
    pub fn atomic_u32(&self, offset: u64) -> Result<&std::sync::atomic::AtomicU32> {
        self.writing("atomic_u32")?;
        let at = self.aligned(offset, 4)?;
        // SAFETY: mapped, writable and aligned for as long as `self` lives.
        Ok(unsafe { std::sync::atomic::AtomicU32::from_ptr(self.data.as_ptr().add(at).cast()) })
    }

    /// The 8 bytes at `offset`, as an atomic that all processes share.
    ///
    /// # Errors
    /// As [`atomic_u32`](Self::atomic_u32), with multiples of 8.
    pub fn atomic_u64(&self, offset: u64) -> Result<&std::sync::atomic::AtomicU64> {
        self.writing("atomic_u64")?;
        let at = self.aligned(offset, 8)?;
        // SAFETY: mapped, writable and aligned for as long as `self` lives.
        Ok(unsafe { std::sync::atomic::AtomicU64::from_ptr(self.data.as_ptr().add(at).cast()) })
    }

    /// The value of the 4 bytes at `offset` (an acquire load), also on a read-only handle.
    ///
    /// # Errors
    /// As [`atomic_u32`](Self::atomic_u32), except for `PermissionDenied`.
    pub fn load_u32(&self, offset: u64) -> Result<u32> {
        self.attached()?;
        let at = self.aligned(offset, 4)?;
        // SAFETY: mapped and aligned; a load does not write. Acquire: what the storing side released is seen.
        Ok(unsafe { AtomicU32::from_ptr(self.data.as_ptr().add(at).cast()) }.load(Ordering::Acquire))
    }

    /// The value of the 8 bytes at `offset` (an acquire load), also on a read-only handle.
    ///
    /// # Errors
    /// As [`atomic_u64`](Self::atomic_u64), except for `PermissionDenied`.
    pub fn load_u64(&self, offset: u64) -> Result<u64> {
        self.attached()?;
        let at = self.aligned(offset, 8)?;
        // SAFETY: mapped and aligned; a load does not write. Acquire: what the storing side released is seen.
        Ok(unsafe { AtomicU64::from_ptr(self.data.as_ptr().add(at).cast()) }.load(Ordering::Acquire))
    }

    /// All [`len`](Self::len) bytes.
    ///
    /// # Safety
    /// While the slice lives, nobody writes to the region, in any process: make sure of it by a protocol of your own.
    pub unsafe fn as_slice(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives; the caller promises that the bytes do not change.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.geometry.len as usize) }
    }

    /// All [`len`](Self::len) bytes, to write.
    ///
    /// # Errors
    /// `PermissionDenied` on a read-only handle; `Detached`.
    ///
    /// # Safety
    /// While the slice lives, nobody else reads or writes the region, in any process or through another handle.
    pub unsafe fn as_mut_slice(&mut self) -> Result<&mut [u8]> {
        self.writing("as_mut_slice")?;
        // SAFETY: mapped and writable for as long as `self` lives; the caller promises to be alone.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.geometry.len as usize) })
    }

    /// Tells everyone who waits that something has changed, after everything that this thread wrote before. Never
    /// blocks; makes a system call only if somebody sleeps.
    ///
    /// # Errors
    /// `PermissionDenied` on a read-only handle; `Detached`.
    #[inline]
    pub fn notify(&self) -> Result<()> {
        self.writing("notify")?;
        word::notify(self.word());
        Ok(())
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: `block` lies in `header`, mapped as long as `self` lives; on a read-only handle it is only loaded.
        unsafe { &self.block.as_ref().notify }
    }

    #[inline]
    fn count(&self) -> u32 {
        word::count(self.word())
    }

    #[inline]
    fn attached(&self) -> Result<()> {
        if self.fork.is_detached() { Err(ErrorKind::Detached.into()) } else { Ok(()) }
    }

    #[inline]
    fn writing(&self, what: &str) -> Result<()> {
        self.attached()?;
        if self.writable { Ok(()) } else { Err(read_only(what)) }
    }

    /// `offset .. offset + len` as indices, if they lie within the region.
    #[inline]
    fn range(&self, offset: u64, len: usize) -> Result<Range<usize>> {
        match offset.checked_add(len as u64) {
            // Within the mapping, so it fits an index.
            Some(end) if end <= self.geometry.len => Ok(offset as usize..end as usize),
            _ => Err(out_of_bounds(offset, len, self.geometry.len)),
        }
    }

    #[inline]
    fn aligned(&self, offset: u64, size: usize) -> Result<usize> {
        if !offset.is_multiple_of(size as u64) {
            let text = format!("an atomic of {size} bytes at offset {offset}: expected a multiple of {size}");
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        Ok(self.range(offset, size)?.start)
    }
}

#[cold]
fn read_only(what: &str) -> Error {
    Error::new(ErrorKind::PermissionDenied, format!("{what} on a region that was opened read-only"))
}

#[cold]
fn out_of_bounds(offset: u64, len: usize, have: u64) -> Error {
    let text = format!("{len} bytes at offset {offset} of a region of {have} bytes");
    Error::new(ErrorKind::InvalidArgument, text)
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("len", &self.len()).field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
