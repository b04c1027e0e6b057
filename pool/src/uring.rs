//! The buffer traits of `tokio-uring`: the runtime owns a buffer while the system reads or writes it.

use crate::buffer::Buffer;
use tokio_uring::buf::{IoBuf, IoBufMut};

/// For operations that take a buffer and give it back: writes send what is written, or a slice of it. Neither looks at
/// the cursor nor moves it.
///
/// ```no_run
/// tokio_uring::start(async {
///     let pool = ramway_pool::BufferPool::new();
///     let file = tokio_uring::fs::File::open("weights.bin").await?;
///     let (result, buffer) = file.read_at(pool.get(1 << 20), 0).await;
///     assert_eq!(buffer.len(), result?);
///     file.close().await
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
// SAFETY: the memory is the lease's, so it stays where it is when the buffer is moved; it is valid for `bytes_total`
// bytes, of which the first `bytes_init` are initialised.
#[cfg_attr(docsrs, doc(cfg(feature = "uring")))]
unsafe impl IoBuf for Buffer {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }

    fn bytes_total(&self) -> usize {
        self.capacity()
    }
}

/// Reads overwrite from the start on, up to the capacity, and nothing is zeroed before. The length becomes what was read,
/// if that is more than it was: [`clear`](Buffer::clear) a buffer that is read into again, or give a
/// [`slice`](tokio_uring::buf::BoundedBuf::slice) from its length on to append.
///
/// ```no_run
/// use tokio_uring::buf::BoundedBuf;
///
/// tokio_uring::start(async {
///     let pool = ramway_pool::BufferPool::new();
///     let file = tokio_uring::fs::File::open("weights.bin").await?;
///     let mut buffer = pool.get(4096);
///     buffer.extend_from_slice(b"in front")?;
///     let (result, slice) = file.read_at(buffer.slice(8..), 0).await;
///     assert_eq!(slice.into_inner().len(), 8 + result?);
///     file.close().await
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
// SAFETY: as above; only this buffer writes to the memory.
#[cfg_attr(docsrs, doc(cfg(feature = "uring")))]
unsafe impl IoBufMut for Buffer {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    unsafe fn set_init(&mut self, count: usize) {
        assert!(count <= self.capacity(), "{count} bytes of {}", self.capacity());
        if count > self.len() {
            // SAFETY: the caller's promise, and no more than the capacity.
            unsafe { self.set_len(count) };
        }
    }
}
