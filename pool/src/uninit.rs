//! A buffer of its whole length, whose bytes say in their type that nobody wrote them yet.

use crate::buffer::Buffer;
use crate::lease::Lease;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A buffer as long as was asked for, uninitialised by its type: a slice of [`MaybeUninit<u8>`]. For those who fill all
/// of it at once, or by parts in any order; [`Buffer`] is for those who fill it from the start on.
///
/// It becomes a [`Buffer`] by one of the calls that say what its bytes are, and goes back to its pool when dropped.
///
/// ```
/// use std::mem::MaybeUninit;
///
/// let pool = ramway_pool::BufferPool::new();
/// let mut buffer = pool.get_uninit(4);
/// let (left, right) = buffer.split_at_mut(2);
/// std::thread::scope(|scope| {
///     scope.spawn(|| left.fill(MaybeUninit::new(b'l')));
///     scope.spawn(|| right.fill(MaybeUninit::new(b'r')));
/// });
/// // SAFETY: both halves are written.
/// let buffer = unsafe { buffer.assume_init() };
/// assert_eq!(buffer, b"llrr");
/// ```
///
/// Without `unsafe` what was there before cannot be read:
///
/// ```compile_fail,E0308
/// let pool = ramway_pool::BufferPool::new();
/// let buffer = pool.get_uninit(4);
/// let old: u8 = buffer[0];
/// ```
pub struct UninitBuffer {
    lease: Lease,
    /// What was asked for: 0..=lease.cap().
    len: usize,
}

// Nothing is said of the bytes, so a panic leaves nothing half done.
impl UnwindSafe for UninitBuffer {}
impl RefUnwindSafe for UninitBuffer {}

impl UninitBuffer {
    #[inline(always)]
    pub(crate) fn from_lease(lease: Lease, len: usize) -> Self {
        Self { lease, len }
    }

    /// A buffer of which `bytes` are written, and of the same capacity: where `bytes` are fewer, the rest can be written
    /// to it later. Its cursor is at the start.
    ///
    /// # Panics
    /// There are more `bytes` than the buffer is long.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let buffer = pool.get_uninit(5).write_from_slice(b"hello");
    /// assert_eq!(buffer, b"hello");
    ///
    /// let mut buffer = pool.get_uninit(8).write_from_slice(b"hello");
    /// assert_eq!((buffer.len(), buffer.capacity()), (5, 8));
    /// buffer.extend_from_slice(b" ya")?;
    /// assert_eq!(buffer, b"hello ya");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn write_from_slice(self, bytes: &[u8]) -> Buffer {
        let len = self.len;
        assert!(bytes.len() <= len, "{} bytes do not fit into a buffer of {len}", bytes.len());
        // SAFETY: the memory is ours, has room for them, and nobody else refers to it.
        unsafe { self.lease.ptr().as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        // SAFETY: as many are written now.
        unsafe { self.assume_init_to(bytes.len()) }
    }

    /// The buffer, all of it zeros.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// assert_eq!(pool.get_uninit(3).zeroed(), [0; 3]);
    /// ```
    pub fn zeroed(self) -> Buffer {
        let len = self.len;
        // SAFETY: the memory is ours for `len` bytes.
        unsafe { self.lease.ptr().as_ptr().write_bytes(0, len) };
        // SAFETY: all of it is written now.
        unsafe { self.assume_init_to(len) }
    }

    /// An empty buffer of this capacity, as [`BufferPool::get`](crate::BufferPool::get) gives it; what may be written to
    /// it already is forgotten.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let buffer = pool.get_uninit(3).into_empty();
    /// assert_eq!((buffer.len(), buffer.capacity()), (0, 3));
    /// ```
    #[inline]
    pub fn into_empty(self) -> Buffer {
        // SAFETY: nothing is said to be written.
        unsafe { self.assume_init_to(0) }
    }

    /// The buffer, all of it written.
    ///
    /// # Safety
    /// Every byte has been initialised, by the buffer's present owner: what an earlier owner left in the memory does not
    /// count.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get_uninit(3);
    /// buffer.fill(std::mem::MaybeUninit::new(1));
    /// // SAFETY: just written.
    /// assert_eq!(unsafe { buffer.assume_init() }, [1; 3]);
    /// ```
    #[inline]
    pub unsafe fn assume_init(self) -> Buffer {
        let len = self.len;
        // SAFETY: the caller's promise.
        unsafe { self.assume_init_to(len) }
    }

    /// The buffer, the first `len` bytes of it written.
    ///
    /// # Safety
    /// `len <= self.len()`, and as many bytes have been initialised, by the buffer's present owner.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get_uninit(3);
    /// buffer[0].write(1);
    /// // SAFETY: just written.
    /// assert_eq!(unsafe { buffer.assume_init_to(1) }, [1]);
    /// ```
    #[inline]
    pub unsafe fn assume_init_to(self, len: usize) -> Buffer {
        debug_assert!(len <= self.len, "{len} bytes of {}", self.len);
        // SAFETY: the caller's promise; the room is what was asked for.
        unsafe { Buffer::from_lease(self.lease, self.len, len) }
    }

    /// Where the memory begins, valid for as many bytes as the buffer is long. It stays there as long as the buffer lives,
    /// also when the buffer is moved.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get_uninit(3);
    /// // SAFETY: three bytes are there, and all of them are written.
    /// let buffer = unsafe {
    ///     buffer.as_mut_ptr().write_bytes(1, 3);
    ///     buffer.assume_init()
    /// };
    /// assert_eq!(buffer, [1; 3]);
    /// ```
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.lease.ptr().as_ptr()
    }
}

impl Deref for UninitBuffer {
    type Target = [MaybeUninit<u8>];

    #[inline]
    fn deref(&self) -> &[MaybeUninit<u8>] {
        // SAFETY: the memory is ours for `len` bytes, whose type says nothing of what they hold.
        unsafe { std::slice::from_raw_parts(self.lease.ptr().as_ptr().cast(), self.len) }
    }
}

impl DerefMut for UninitBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: as above. That a byte can be made uninitialised again through it harms nothing: none is said not to be.
        unsafe { std::slice::from_raw_parts_mut(self.lease.ptr().as_ptr().cast(), self.len) }
    }
}

impl fmt::Debug for UninitBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UninitBuffer").field("len", &self.len).finish()
    }
}
