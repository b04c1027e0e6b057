//! A buffer with room for as many bytes as were asked for, of which only those are visible that its owner wrote.

use crate::lease::Lease;
use std::io;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A buffer of a pool, to which it goes back when it is dropped, on whatever thread.
///
/// It has a [`capacity`](Self::capacity), which is what was asked for and never grows, and a length: how many bytes this
/// owner has written. As a slice (`&buffer[..]`) it is the written bytes and nothing else.
///
/// ```
/// use ramway_pool::BufferPool;
/// use std::io::Write;
///
/// let pool = BufferPool::new();
/// let mut buffer = pool.get(8);
/// assert_eq!((buffer.len(), buffer.capacity()), (0, 8));
/// buffer.write_all(b"eight by")?;
/// assert_eq!(buffer, b"eight by");
/// assert_eq!(buffer.write(b"te")?, 0); // full: no byte beyond what was asked for
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Why a get zeroes nothing and yet shows nothing old
/// The memory of a buffer that comes back still holds what its last owner wrote, and memory that is new holds nothing
/// that Rust allows to be read. As a `&[u8]` of its full size it could be given out only after it was overwritten, and
/// overwriting a mebibyte takes thousands of times as long as getting it. So the full size is not in the type that is
/// given out:
///
/// * The slice ends at the length, and a buffer that was just got has the length 0. The length is a field of `Buffer`,
///   not of the memory: it is gone when the buffer is dropped, so there is nothing to erase for the next owner.
/// * The length grows by what safe calls copy in ([`Write`](io::Write), [`BufMut`](bytes::BufMut),
///   [`extend_from_slice`](Self::extend_from_slice)), by what they have the system write
///   ([`read_fd`](Self::read_fd)), and by zeros where they leave a gap ([`Seek`](io::Seek) beyond the end, then a write;
///   [`resize`](Self::resize)). Else only by `unsafe` calls ([`set_len`](Self::set_len),
///   [`advance_mut`](bytes::BufMut::advance_mut)), whose caller answers for the bytes.
/// * What lies beyond the length can be reached as [`MaybeUninit<u8>`] only
///   ([`spare_capacity_mut`](Self::spare_capacity_mut)), which no safe code can read.
///
/// [`UninitBuffer`](crate::UninitBuffer) is the same the other way round: its full size at once, all of it `MaybeUninit`.
/// [`get_zeroed`](crate::BufferPool::get_zeroed) is for those who need the full size as a slice at once, and pay for it.
///
/// # The cursor
/// A buffer is also a file of bounded size, as [`io::Cursor`] makes one of a vector: [`Read`](io::Read),
/// [`BufRead`](io::BufRead), [`Write`](io::Write) and [`Seek`](io::Seek) work at a cursor, which stands at the start of
/// every buffer that was just got. A write overwrites what is there. All other calls are about the end of what is
/// written, and neither look at the cursor nor move it, except [`clear`](Self::clear). So what was appended is then read
/// from its start, and what was written by `Write` after a [`rewind`](io::Seek::rewind):
///
/// ```
/// use ramway_pool::BufferPool;
/// use std::io::{Read, Seek, SeekFrom, Write};
///
/// let pool = BufferPool::new();
/// let mut buffer = pool.get(16);
/// buffer.extend_from_slice(b"header: ????")?; // the cursor is still at 0
/// buffer.seek(SeekFrom::Start(8))?;
/// buffer.write_all(b"1234")?;
/// buffer.rewind()?;
/// let mut text = String::new();
/// buffer.read_to_string(&mut text)?;
/// assert_eq!(text, "header: 1234");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Threads, comparisons, panics
/// `Send`, `Sync` and unwind safe: it is plain memory with one owner. Equality and hashes are those of the written bytes.
/// No call blocks, but those that read from something that does.
pub struct Buffer {
    lease: Lease,
    /// What was asked for: 0..=lease.cap(). Never grows.
    room: usize,
    /// How much of it this owner initialised: 0..=room.
    len: usize,
    /// Where `io::Write` and the like stand; may lie beyond.
    pos: u64,
}

// A panic in the middle of a call leaves the written bytes written and the length below them.
impl UnwindSafe for Buffer {}
impl RefUnwindSafe for Buffer {}

impl Buffer {
    /// # Safety
    /// The first `len` bytes are this owner's: initialised, and nobody else's old ones. `len <= room <= lease.cap()`.
    #[inline(always)]
    pub(crate) unsafe fn from_lease(lease: Lease, room: usize, len: usize) -> Self {
        Self { lease, room, len, pos: 0 }
    }

    /// The memory and how much of it is written.
    pub(crate) fn into_parts(self) -> (Lease, usize) {
        (self.lease, self.len)
    }

    /// What was asked for, in bytes. It never grows.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// assert_eq!(pool.get(1000).capacity(), 1000);
    /// ```
    #[inline]
    pub fn capacity(&self) -> usize {
        self.room
    }

    /// How many bytes can still be appended: `capacity() - len()`.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get(10);
    /// buffer.extend_from_slice(b"abc")?;
    /// assert_eq!(buffer.remaining_capacity(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn remaining_capacity(&self) -> usize {
        self.room - self.len
    }

    /// Where the cursor stands, in bytes from the start; possibly beyond the end.
    ///
    /// ```
    /// use std::io::Write;
    ///
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get(10);
    /// buffer.write_all(b"abc")?;
    /// assert_eq!(buffer.position(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn position(&self) -> u64 {
        self.pos
    }

    /// Moves the cursor, in bytes from the start. It may lie beyond the end: what a write then leaves out becomes zeros.
    ///
    /// ```
    /// use std::io::Write;
    ///
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get(10);
    /// buffer.set_position(2);
    /// assert_eq!(buffer.len(), 0); // nothing is written yet
    /// buffer.write_all(b"abc")?;
    /// assert_eq!(buffer, b"\0\0abc");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn set_position(&mut self, position: u64) {
        self.pos = position;
    }

    /// Appends `bytes`: all of them or none. The cursor stays.
    ///
    /// # Errors
    /// [`WriteZero`](io::ErrorKind::WriteZero): there is no room for them, and nothing was written.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get(4);
    /// buffer.extend_from_slice(b"abc")?;
    /// assert!(buffer.extend_from_slice(b"de").is_err());
    /// assert_eq!(buffer, b"abc");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check_room(bytes.len(), io::ErrorKind::WriteZero)?;
        // SAFETY: there is room for them behind what is written, and nobody else refers to it.
        unsafe {
            self.as_mut_ptr().add(self.len).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.len += bytes.len();
        Ok(())
    }

    /// Makes the length `len`: cuts off what lies beyond, or appends as many bytes of this `value`. The cursor stays.
    ///
    /// # Errors
    /// [`WriteZero`](io::ErrorKind::WriteZero): `len` is more than the capacity, and nothing was changed.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get(4);
    /// buffer.resize(3, b'x')?;
    /// assert_eq!(buffer, b"xxx");
    /// assert!(buffer.resize(5, b'x').is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn resize(&mut self, len: usize, value: u8) -> io::Result<()> {
        if len > self.len {
            self.check_room(len - self.len, io::ErrorKind::WriteZero)?;
            let more = len - self.len;
            self.spare_capacity_mut()[..more].fill(MaybeUninit::new(value));
        }
        self.len = len;
        Ok(())
    }

    /// Cuts off what lies beyond the first `len` bytes; does nothing if there are no more. The cursor stays.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get_zeroed(4);
    /// buffer.truncate(1);
    /// assert_eq!(buffer, [0]);
    /// assert_eq!(buffer.capacity(), 4);
    /// ```
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes the buffer as it was when it was got: empty, with the cursor at the start.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get_zeroed(4);
    /// buffer.clear();
    /// assert!(buffer.is_empty());
    /// ```
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.pos = 0;
    }

    /// Where the memory begins, valid for `capacity()` bytes, of which `len()` are initialised. It stays there as long as
    /// the buffer lives, also when the buffer is moved.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let buffer = pool.get_zeroed(4);
    /// assert_eq!(unsafe { *buffer.as_ptr().add(3) }, 0);
    /// ```
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.lease.ptr().as_ptr()
    }

    /// As [`as_ptr`](Self::as_ptr), to write to: for calls to C and the like, with [`set_len`](Self::set_len) after it.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get(4);
    /// // SAFETY: of the four bytes that are there, two are written.
    /// unsafe {
    ///     buffer.as_mut_ptr().write_bytes(7, 2);
    ///     buffer.set_len(2);
    /// }
    /// assert_eq!(buffer, [7, 7]);
    /// ```
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.lease.ptr().as_ptr()
    }

    /// The bytes between `len()` and `capacity()`, for the caller to write, who then says so by
    /// [`set_len`](Self::set_len).
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get(4);
    /// buffer.spare_capacity_mut()[0].write(7);
    /// // SAFETY: the first byte is written.
    /// unsafe { buffer.set_len(1) };
    /// assert_eq!(buffer, [7]);
    /// ```
    #[inline]
    pub fn spare_capacity_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the memory is ours for `room` bytes, and `len` is no more than that.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr().add(self.len).cast(), self.room - self.len) }
    }

    /// Says that the first `len` bytes are written. The cursor stays.
    ///
    /// # Safety
    /// `len <= capacity()`, and all of them are initialised, by the buffer's present owner: what an earlier owner left in
    /// the memory does not count.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get(2);
    /// buffer.spare_capacity_mut().fill(std::mem::MaybeUninit::new(1));
    /// // SAFETY: both bytes are written.
    /// unsafe { buffer.set_len(2) };
    /// assert_eq!(buffer, [1, 1]);
    /// ```
    #[inline]
    pub unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(len <= self.room, "{len} bytes of {}", self.room);
        self.len = len;
    }

    /// The written bytes as a vector that the pool does not know any more; nor does `max_bytes` count it. Its capacity
    /// is that of the allocation.
    ///
    /// No copy, unless the pool was built with `alignment`, `pinned_memory` or `huge_pages`: such memory cannot be a
    /// vector's, so the bytes are copied into an allocation of their own (as `to_vec` does, which ends the process where
    /// the system has no memory), and the buffer goes back.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get(100);
    /// buffer.extend_from_slice(b"kept")?;
    /// let vector: Vec<u8> = buffer.into_vec();
    /// assert_eq!(vector, b"kept");
    /// assert_eq!(pool.stats().held_bytes, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_vec(self) -> Vec<u8> {
        let (lease, len) = self.into_parts();
        // SAFETY: as many bytes are initialised.
        unsafe { lease.into_vec(len) }
    }

    /// An error of this kind if `more` bytes cannot be appended.
    #[inline]
    pub(crate) fn check_room(&self, more: usize, kind: io::ErrorKind) -> io::Result<()> {
        if more <= self.remaining_capacity() { Ok(()) } else { Err(self.no_room(more, kind)) }
    }

    #[cold]
    fn no_room(&self, more: usize, kind: io::ErrorKind) -> io::Error {
        let (left, room) = (self.remaining_capacity(), self.room);
        io::Error::new(kind, format!("{more} bytes do not fit: {left} of the buffer's {room} are left"))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are initialised and ours.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr(), self.len) }
    }
}
