//! The pool: what a user calls.

use crate::buffer::Buffer;
use crate::builder::{Builder, Options};
use crate::class;
use crate::error::{Error, ErrorKind, Result};
use crate::hot;
use crate::inner::Inner;
use crate::lease::{Lease, Tag};
use crate::stats::Stats;
use crate::uninit::UninitBuffer;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;

/// A pool of buffers. Its clones are handles of the same pool, which may be used from any thread, all at once.
///
/// ```
/// use ramway_pool::BufferPool;
/// use std::io::Write;
///
/// let pool = BufferPool::new();
/// let mut buffer = pool.get(64 * 1024); // empty, with room for 64 KiB
/// buffer.write_all(b"read from somewhere").unwrap();
/// assert_eq!(&*buffer, b"read from somewhere");
/// drop(buffer); // back to the pool, from whatever thread
/// assert_eq!(pool.len(), 1);
/// ```
///
/// # How long a pool lives
/// Dropping the last handle frees what is idle, in all threads; buffers that are out stay valid, and are freed instead
/// of kept when they are dropped. A buffer that is forgotten (`mem::forget`, a leaked `Bytes`) keeps its pool's slot, see
/// below, for the rest of the process.
///
/// # What a get costs
/// If the calling thread has a buffer of the size in its cache: no lock, no atomic operation, no system call, nothing
/// that depends on the size. Else a lock and a batch of buffers from a shard; else an allocation, before which idle memory
/// is freed if the pool holds over 15 % more than what was in use of late, and over 4 MiB a thread. The first 63 pools that
/// exist at a time have caches in their threads; further ones work from their shards alone.
///
/// # Forks and signals
/// A child of `fork` can use the pools that it inherits; memory is not shared with the parent. As an allocator's, no call
/// may be made from a signal handler, nor from a handler of `pthread_atfork`.
pub struct BufferPool {
    inner: NonNull<Inner>,
    /// These two are the pool's own, here so that a get need not look further.
    tag: Tag,
    smallest: usize,
}

// SAFETY: a handle is a counted reference to what any thread may use.
unsafe impl Send for BufferPool {}
// SAFETY: as above.
unsafe impl Sync for BufferPool {}
impl UnwindSafe for BufferPool {}
impl RefUnwindSafe for BufferPool {}

impl Default for BufferPool {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for BufferPool {
    fn clone(&self) -> Self {
        self.inner().add_handle();
        Self { ..*self }
    }
}

impl Drop for BufferPool {
    fn drop(&mut self) {
        // SAFETY: this handle's.
        unsafe { Inner::drop_handle(self.inner) };
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool").field("options", self.inner().options()).field("stats", &self.stats()).finish()
    }
}

/// Ends a call that has no way to say that it failed.
#[cold]
#[inline(never)]
#[track_caller]
fn fail(error: Error) -> ! {
    panic!("{error}")
}

impl BufferPool {
    /// A pool with the defaults of [`Builder`]. Make one and keep it: each thread that uses it gets a cache of its own, which
    /// takes 13 KiB (39 KiB with the largest `tls_cache_size`) that neither `max_bytes` nor [`stats`](Self::stats) counts.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// assert!(pool.is_empty());
    /// ```
    pub fn new() -> Self {
        match Self::builder().build() {
            Ok(pool) => pool,
            Err(error) => unreachable!("the defaults: {error}"),
        }
    }

    /// Options for a pool.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::builder().max_bytes(64 << 20).build()?;
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn from_options(options: Options) -> Self {
        let zero = options.zero_on_return;
        let inner = Inner::open(options);
        // SAFETY: just made, with one handle: this one.
        let (slot, smallest) = unsafe { (inner.as_ref().slot(), inner.as_ref().smallest()) };
        Self { inner, tag: Tag::new(slot, zero), smallest }
    }

    fn inner(&self) -> &Inner {
        // SAFETY: the handles' reference keeps it alive.
        unsafe { self.inner.as_ref() }
    }

    /// A lease of at least `len` bytes; with `zeroed`, whether its first `len` bytes are zeros is said beside it.
    #[inline(always)]
    fn lease(&self, len: usize, zeroed: bool) -> Result<(Lease, bool)> {
        let class = class::of(if len > self.smallest { len } else { self.smallest });
        match hot::with(|hot| hot.get(self.tag.slot(), class)) {
            // SAFETY: out of this pool's cache, from the bin of this class.
            Some(block) => Ok((unsafe { Lease::new(block, self.inner, self.tag, class) }, false)),
            None => self.lease_slowly(len, zeroed),
        }
    }

    #[cold]
    #[inline(never)]
    fn lease_slowly(&self, len: usize, zeroed: bool) -> Result<(Lease, bool)> {
        let (block, class, zeros) = self.inner().refill(len, zeroed)?;
        // SAFETY: the block is ours now, with its reference.
        Ok((unsafe { Lease::new(block, self.inner, self.tag, class) }, zeros))
    }

    /// An empty buffer with room for `len` bytes, which is what it can ever hold. What is not written is not in it: see
    /// [`Buffer`] for why nothing is zeroed and yet nothing old can be seen.
    ///
    /// Allocates if nothing suitable is idle.
    ///
    /// # Panics
    /// Where [`try_get`](Self::try_get) gives an error.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let buffer = pool.get(1 << 20);
    /// assert_eq!((buffer.len(), buffer.capacity()), (0, 1 << 20));
    /// ```
    #[inline]
    #[track_caller]
    pub fn get(&self, len: usize) -> Buffer {
        match self.try_get(len) {
            Ok(buffer) => buffer,
            Err(error) => fail(error),
        }
    }

    /// As [`get`](Self::get), with an error instead of a panic.
    ///
    /// # Errors
    /// [`TooLarge`](crate::ErrorKind::TooLarge): more than 128 GiB. [`LimitReached`](crate::ErrorKind::LimitReached):
    /// `max_bytes`, although all idle memory was given back, also that in the caches of other threads.
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory): of the system.
    ///
    /// ```
    /// use ramway_pool::{BufferPool, ErrorKind};
    ///
    /// let pool = BufferPool::builder().max_bytes(1 << 20).build()?;
    /// let first = pool.try_get(1 << 20)?;
    /// assert_eq!(pool.try_get(1).unwrap_err().kind(), ErrorKind::LimitReached);
    /// drop(first);
    /// assert!(pool.try_get(1).is_ok());
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    #[inline]
    pub fn try_get(&self, len: usize) -> Result<Buffer> {
        let (lease, _) = self.lease(len, false)?;
        // SAFETY: nothing is said to be written, and the lease has room for `len` bytes.
        Ok(unsafe { Buffer::from_lease(lease, len, 0) })
    }

    /// A buffer of `len` zeros, all of it written. Memory that is new from the system is not zeroed again.
    ///
    /// # Panics
    /// Where [`try_get`](Self::try_get) gives an error.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// assert_eq!(*pool.get_zeroed(3), [0, 0, 0]);
    /// ```
    #[track_caller]
    pub fn get_zeroed(&self, len: usize) -> Buffer {
        let (lease, zeros) = self.lease(len, true).unwrap_or_else(|error| fail(error));
        if !zeros {
            // SAFETY: the lease has room for `len` bytes.
            unsafe { lease.ptr().write_bytes(0, len) };
        }
        // SAFETY: all of it is written.
        unsafe { Buffer::from_lease(lease, len, len) }
    }

    /// A buffer of `len` bytes that are uninitialised by their type: for those who fill all of it at once.
    ///
    /// # Panics
    /// Where [`try_get`](Self::try_get) gives an error.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let buffer = pool.get_uninit(5).write_from_slice(b"hello");
    /// assert_eq!(&*buffer, b"hello");
    /// ```
    #[inline]
    #[track_caller]
    pub fn get_uninit(&self, len: usize) -> UninitBuffer {
        match self.lease(len, false) {
            Ok((lease, _)) => UninitBuffer::from_lease(lease, len),
            Err(error) => fail(error),
        }
    }

    /// An empty vector, for those who hold plain vectors: an idle one as long as the one that was [put](Self::put) last, by
    /// whatever thread, or up to one and a half times as long; if there is none, one of `min_buffer_size`. The pool does not
    /// know it any more, nor does `max_bytes` count it.
    ///
    /// # Panics
    /// Where [`try_get`](Self::try_get) gives an error.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let mut line = pool.take();
    /// line.extend_from_slice(&[7; 1 << 17]);
    /// pool.put(line);
    /// assert!(pool.take().capacity() >= 1 << 17 && pool.is_empty());
    /// ```
    #[track_caller]
    pub fn take(&self) -> Vec<u8> {
        if !self.inner().is_plain() {
            return self.apart(self.smallest);
        }
        let class = self.inner().usual();
        let kept = hot::with(|hot| hot.get(self.tag.slot(), class)).map(|block| (block, class));
        match kept.or_else(|| self.inner().refill_idle(class)) {
            // SAFETY: the block is ours now, with its reference, and none of it is said to be initialised.
            Some((block, class)) => unsafe { Lease::new(block, self.inner, self.tag, class).into_vec(0) },
            None => self.take_with_capacity(self.smallest),
        }
    }

    /// An empty vector with room for at least `capacity` bytes. The pool does not know it any more.
    ///
    /// A pool with `alignment`, `pinned_memory` or `huge_pages` has no memory that a vector could own: it is allocated.
    ///
    /// # Panics
    /// Where [`try_get`](Self::try_get) gives an error.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// assert!(pool.take_with_capacity(4096).capacity() >= 4096);
    /// ```
    #[track_caller]
    pub fn take_with_capacity(&self, capacity: usize) -> Vec<u8> {
        if !self.inner().is_plain() {
            return self.apart(capacity);
        }
        let (lease, _) = self.lease(capacity, false).unwrap_or_else(|error| fail(error));
        // SAFETY: none of it is said to be initialised.
        unsafe { lease.into_vec(0) }
    }

    /// A vector beside a pool whose memory cannot be one.
    #[track_caller]
    fn apart(&self, capacity: usize) -> Vec<u8> {
        let mut vector = Vec::new();
        let checked = self.inner().class_for(capacity).and_then(|_| {
            let out_of_memory =
                |_| Error::new(ErrorKind::OutOfMemory, format!("a vector of {capacity} bytes: no memory"));
            vector.try_reserve_exact(capacity).map_err(out_of_memory)
        });
        if let Err(error) = checked {
            fail(error);
        }
        vector
    }

    /// Makes a vector's memory the pool's, wherever it came from; what it held is not kept. A capacity between two sizes
    /// of the pool's is shrunk to the lower one, by a ninth at most; powers of two, and what [`take`](Self::take) gave, stay
    /// as they are. The vector is dropped instead if its capacity is below `min_buffer_size`, if `max_bytes` has no room for
    /// it, or if the pool's memory is not a vector's (see [`take_with_capacity`](Self::take_with_capacity)).
    ///
    /// Up to `max_bytes` and `max_buffers_per_shard` everything is kept until a get needs an allocation or somebody
    /// [trims](Self::trim): where more is put than taken, set `max_bytes`.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// pool.put(vec![1; 4096]);
    /// assert_eq!(pool.stats().idle_bytes, 4096);
    /// assert!(pool.get(4096).is_empty());
    /// ```
    pub fn put(&self, vector: Vec<u8>) {
        Inner::adopt(self.inner, vector);
    }

    /// Allocates `count` buffers of `len` bytes, idle and untouched (see [`warm`](Self::warm)). They are not given back
    /// for being too much until [`trim`](Self::trim) or [`clear`](Self::clear).
    ///
    /// # Errors
    /// Those of [`try_get`](Self::try_get), and [`LimitReached`](crate::ErrorKind::LimitReached) where
    /// `max_buffers_per_shard` does not allow `count` of them; also if `max_bytes` is reached by what is idle already. What was
    /// allocated until then stays.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// pool.preallocate(4, 65536)?;
    /// assert_eq!(pool.len(), 4);
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn preallocate(&self, count: usize, len: usize) -> Result<()> {
        self.inner().preallocate(count, len)
    }

    /// Touches every page of what is idle, so that its first use does not fault; gives how many bytes that were. Meant
    /// for the start of a program: while it lasts, other threads do not find these buffers.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// pool.preallocate(2, 1 << 20)?;
    /// assert!(pool.warm() >= 2 << 20);
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn warm(&self) -> usize {
        self.inner().warm()
    }

    /// Gives idle memory back to the system until at most `keep` bytes are idle, those of other threads' caches included;
    /// gives how many bytes that were.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// pool.preallocate(4, 65536)?;
    /// assert_eq!(pool.trim(2 * 65536), 2 * 65536);
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn trim(&self, keep: usize) -> usize {
        hot::with(|hot| self.inner().trim(hot, keep))
    }

    /// Gives all idle memory back to the system; gives how many bytes that were. Buffers that are out stay valid, and
    /// will be kept when they come back.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// drop(pool.get(65536));
    /// assert_eq!(pool.clear(), 65536);
    /// assert!(pool.is_empty());
    /// ```
    pub fn clear(&self) -> usize {
        self.trim(0)
    }

    /// What the pool holds and did. Waits for the locks of all shards, one after the other. While other threads get and
    /// drop buffers, the figures are of slightly different moments.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// let buffer = pool.get(65536);
    /// assert_eq!(pool.stats().in_use_bytes, 65536);
    /// println!("{}", pool.stats());
    /// ```
    pub fn stats(&self) -> Stats {
        self.inner().stats()
    }

    /// How many buffers are idle.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::new();
    /// drop((pool.get(1), pool.get(1)));
    /// assert_eq!(pool.len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.stats().idle_buffers
    }

    /// Whether no buffer is idle.
    ///
    /// ```
    /// assert!(ramway_pool::BufferPool::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
