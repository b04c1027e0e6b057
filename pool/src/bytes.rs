//! A buffer and the `bytes` crate: written through `BufMut`, and shared once it is written.

use crate::buffer::Buffer;
use crate::lease::Lease;
use bytes::buf::UninitSlice;
use bytes::{BufMut, Bytes};

/// Appends at the end of what is written, whatever the cursor says, and leaves the cursor where it is: so what was
/// appended is read from its start. There is room for `capacity() - len()` bytes and never more, so
/// [`put_slice`](BufMut::put_slice) and the like panic where they would not fit, as they do for a slice.
///
/// This is what the `read_buf` of tokio, and of readers like it, take: they write into the room without zeroing it first.
///
/// ```
/// use bytes::BufMut;
///
/// let pool = ramway_pool::BufferPool::new();
/// let mut buffer = pool.get(6);
/// buffer.put_u32_le(7);
/// assert_eq!(buffer.remaining_mut(), 2);
/// assert_eq!(buffer, [7, 0, 0, 0]);
/// ```
// SAFETY: `chunk_mut` is the room from the end of what is written on, and does not move; `advance_mut` makes no more of
// it written than the caller says and there is.
unsafe impl BufMut for Buffer {
    #[inline]
    fn remaining_mut(&self) -> usize {
        self.remaining_capacity()
    }

    #[inline]
    fn chunk_mut(&mut self) -> &mut UninitSlice {
        UninitSlice::uninit(self.spare_capacity_mut())
    }

    /// Says that as many more bytes are written.
    ///
    /// # Safety
    /// The next `count` bytes of [`chunk_mut`](BufMut::chunk_mut) are initialised, by the buffer's present owner.
    ///
    /// # Panics
    /// Fewer than `count` bytes are left.
    #[inline]
    unsafe fn advance_mut(&mut self, count: usize) {
        let left = self.remaining_capacity();
        assert!(count <= left, "cannot advance by {count} bytes: {left} are left");
        let len = self.len() + count;
        // SAFETY: the caller's promise, and no more than the capacity.
        unsafe { self.set_len(len) };
    }

    #[inline]
    #[track_caller]
    fn put_slice(&mut self, bytes: &[u8]) {
        if let Err(error) = self.extend_from_slice(bytes) {
            panic!("{error}");
        }
    }
}

/// What keeps the memory as long as a `Bytes` refers to it.
struct Frozen {
    lease: Lease,
    /// Initialised.
    len: usize,
}

impl AsRef<[u8]> for Frozen {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: as many bytes are initialised, and nobody writes to them any more.
        unsafe { std::slice::from_raw_parts(self.lease.ptr().as_ptr(), self.len) }
    }
}

impl Buffer {
    /// What is written, to be shared: cloning and slicing a [`Bytes`] copies nothing. The memory, all of it, goes back to
    /// the pool when the last clone or slice is dropped, on whatever thread; of an empty buffer, at once.
    ///
    /// Costs one allocation of about 50 bytes, for the count of clones; none for an empty buffer. Such a `Bytes` cannot be
    /// made mutable again: `try_into_mut` gives it back unchanged.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut buffer = pool.get(4096);
    /// buffer.extend_from_slice(b"hello")?;
    /// let bytes = buffer.freeze();
    /// let part = bytes.slice(1..3);
    /// drop(bytes);
    /// assert_eq!(part, "el");
    /// assert_eq!(pool.len(), 0);
    /// std::thread::spawn(move || drop(part)).join().unwrap();
    /// assert_eq!(pool.len(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn freeze(self) -> Bytes {
        let (lease, len) = self.into_parts();
        if len == 0 { Bytes::new() } else { Bytes::from_owner(Frozen { lease, len }) }
    }
}

impl From<Buffer> for Bytes {
    fn from(buffer: Buffer) -> Self {
        buffer.freeze()
    }
}
