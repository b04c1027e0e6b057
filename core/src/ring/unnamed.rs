//! Rings without a name: for two threads, or in memory that the caller brings.

use std::os::fd::AsFd;
use std::sync::Arc;

use super::options::EndOptions;
use super::{Receiver, Ring, Sender};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{ALIGN_MIN, Kind};
use crate::origin::Origin;
use crate::segment::{Attachment, HeaderMap, Link, RingGeometry, Role, Spec, format, map_data, validate};
use crate::sys::fork::Entry;
use crate::sys::mem::{Access, MirrorMap, page_size};
use crate::sys::memfd;
use crate::sys::placement::PlacementOptions;
use crate::wait::WaitPolicy;

impl Ring {
    /// Both ends of a new ring without a name, for two threads of this process. `capacity` is in bytes, rounded up to a
    /// power of two of at least a page.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// let (mut tx, mut rx) = ramway::Ring::pair(1 << 16)?;
    /// let thread = std::thread::spawn(move || tx.send(0, b"from a thread"));
    /// assert_eq!(&*rx.recv()?, b"from a thread");
    /// thread.join().unwrap()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `NoSpace` if there is not enough memory.
    pub fn pair(capacity: u64) -> Result<(Sender, Receiver)> {
        Self::pair_with(capacity, ALIGN_MIN, WaitPolicy::default(), false)
    }

    /// [`pair`](Self::pair) with what a [`RingBuilder`](super::RingBuilder) can be told of it.
    ///
    /// # Errors
    /// As for [`pair`](Self::pair); `InvalidArgument` if `align` cannot be.
    #[doc(hidden)]
    pub fn pair_with(
        capacity: u64,
        align: u32,
        policy: WaitPolicy,
        writable_views: bool,
    ) -> Result<(Sender, Receiver)> {
        let spec = Spec::ring(capacity, align, page_size())?;
        let doing = |e: Error| e.context(format_args!("making a ring of {capacity} bytes for two threads"));
        let placement = PlacementOptions::default();
        let page = format(&spec);
        let file = memfd::create("ramway-pair", spec.size, &page.0[..]).map_err(doing)?;
        let geometry = validate(&page, spec.size)?.rings[0].expect("the specification has a ring");
        let header = Arc::new(HeaderMap::map(file.as_fd(), Access::ReadWrite).map_err(doing)?);
        let options = EndOptions { policy, writable_views, ..EndOptions::default() };
        let end = |role: Role| -> Result<Attachment> {
            let data = map_data(file.as_fd(), &geometry, options.access(role), &placement).map_err(doing)?;
            Ok(unlinked(data, header.clone(), &geometry, "pair"))
        };
        let (producer, consumer) = (end(Role::Producer)?, end(Role::Consumer)?);
        Ok((options.sender(producer)?, options.receiver(consumer)?))
    }

    /// Makes the caller's own shared memory a new, empty ring: a header page, then as many bytes of data as the largest
    /// power of two that fits. Gives the capacity. Both sides then call [`attach_sender`](Self::attach_sender) and
    /// [`attach_receiver`](Self::attach_receiver). `align` is that of the payloads: a power of two, 16 to 4096.
    ///
    /// # Safety
    /// `memory` is the start of `len` writable bytes of one mapping that nobody else uses yet.
    ///
    /// # Errors
    /// `InvalidArgument` if `memory` is not page-aligned, shorter than two pages, or `align` cannot be.
    pub unsafe fn format(memory: *mut u8, len: usize, align: u32) -> Result<u64> {
        check_memory(memory, len)?;
        let room = (len - HeaderMap::mapped_len()) as u64;
        let capacity = 1 << room.ilog2();
        let spec = Spec::ring(capacity, align, page_size())?;
        let page = format(&spec);
        // SAFETY: the caller says that `len` bytes, more than a header page, are writable and nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(page.0.as_ptr(), memory, page.0.len()) };
        Ok(capacity)
    }

    /// The sending end of a ring in the caller's own shared memory, made by [`format`](Self::format), in this process
    /// or another one. The memory is mapped once more, so the caller's mapping may go before the sender does.
    ///
    /// There is no lock and no socket here: liveness of the other side is the caller's business, and only an orderly
    /// close is seen.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// # let len = 3 * 65536;
    /// # let memory = unsafe {
    /// #     let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    /// #     libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0).cast::<u8>()
    /// # };
    /// // `memory` points to `len` bytes of a MAP_SHARED mapping of yours.
    /// // SAFETY: nobody else uses it, and there is one sender and one receiver.
    /// let (mut tx, mut rx) = unsafe {
    ///     ramway::Ring::format(memory, len, 16)?;
    ///     (ramway::Ring::attach_sender(memory, len)?, ramway::Ring::attach_receiver(memory, len)?)
    /// };
    /// tx.send(0, b"hello")?;
    /// assert_eq!(&*rx.recv()?, b"hello");
    /// # Ok(()) }
    /// ```
    ///
    /// # Safety
    /// `memory` is the start of `len` bytes of one `MAP_SHARED` mapping that stays as long as it is (its file is not
    /// truncated), and nobody else is the ring's sender.
    ///
    /// # Errors
    /// `Unsupported` if the memory is private to this process, `AbiMismatch` or `Corrupt` if it holds no ring,
    /// `InvalidArgument` as for [`format`](Self::format).
    pub unsafe fn attach_sender(memory: *mut u8, len: usize) -> Result<Sender> {
        // SAFETY: passed on from the caller.
        EndOptions::default().sender(unsafe { attach(memory, len, Role::Producer) }?)
    }

    /// The receiving end; see [`attach_sender`](Self::attach_sender).
    ///
    /// # Safety
    /// As for [`attach_sender`](Self::attach_sender), and nobody else is the ring's receiver.
    ///
    /// # Errors
    /// As for [`attach_sender`](Self::attach_sender).
    pub unsafe fn attach_receiver(memory: *mut u8, len: usize) -> Result<Receiver> {
        // SAFETY: passed on from the caller.
        EndOptions::default().receiver(unsafe { attach(memory, len, Role::Consumer) }?)
    }
}

/// An attachment to a ring that has no name.
fn unlinked(data: MirrorMap, header: Arc<HeaderMap>, geometry: &RingGeometry, what: &'static str) -> Attachment {
    Attachment::new(data, header, 0, geometry, Origin::unnamed(what), Link::None, Entry::new(Vec::new()))
}

fn check_memory(memory: *mut u8, len: usize) -> Result<()> {
    let page = page_size();
    if memory.is_null() || !memory.addr().is_multiple_of(page) || len < HeaderMap::mapped_len() + page {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "memory of {len} bytes at {memory:p} cannot be a ring: it must begin on a page ({page} bytes) and have \
                 room for a header page and a page of data"
            ),
        ));
    }
    Ok(())
}

/// # Safety
/// As [`Ring::attach_sender`].
unsafe fn attach(memory: *mut u8, len: usize, role: Role) -> Result<Attachment> {
    check_memory(memory, len)?;
    // SAFETY: page-aligned, long enough (checked) and one mapping (the caller).
    let header = unsafe { HeaderMap::duplicate(memory) }?;
    let page = header.snapshot();
    // The memory may be longer than the ring in it; a ring that claims more than the memory is `Corrupt`.
    let size = page.claimed_size().min(len as u64);
    let valid = validate(&page, size)?;
    valid.expect_kind(Kind::Ring)?;
    let geometry = valid.rings[0].expect("a segment of kind ring has a ring");
    // SAFETY: the data lies inside `len` (validated), hence inside the caller's mapping, on a page boundary.
    let data = unsafe {
        MirrorMap::duplicate(memory.add(geometry.data_offset as usize), geometry.capacity as usize, role.data_access())
    }?;
    Ok(unlinked(data, Arc::new(header), &geometry, "ring in the caller's memory"))
}
