//! Options of a pool.

use crate::class;
use crate::error::{Error, ErrorKind, Result};
use crate::pool::BufferPool;
use crate::sys::memory::{self, Kind};
use crate::sys::topology;
use std::fmt::Display;

/// Idle buffers that all shards together keep by default.
const IDLE_BUFFERS: usize = 65_536;

/// Options of a pool, see [`BufferPool::builder`]. The setters take any value: [`build`](Self::build) checks them.
///
/// `cpus` in the formulas is the number of threads that this process can run at a time,
/// [`available_parallelism`](std::thread::available_parallelism): its affinity and the quota of its control group
/// count.
///
/// | option | default | range |
/// | --- | --- | --- |
/// | [`tls_cache_size`](Self::tls_cache_size) | 8 | 0 to 64 |
/// | [`min_buffer_size`](Self::min_buffer_size) | 1,024 | a power of two from 64 to 1 GiB |
/// | [`num_shards`](Self::num_shards) | min(64, next power of two from `cpus` on) | a power of two from 1 to 256 |
/// | [`max_buffers_per_shard`](Self::max_buffers_per_shard) | max(1,024, 65,536 / `num_shards`) | any |
/// | [`alignment`](Self::alignment) | 1 | a power of two from 1 to 1 GiB |
/// | [`pinned_memory`](Self::pinned_memory) | false | |
/// | [`huge_pages`](Self::huge_pages) | false | |
/// | [`max_bytes`](Self::max_bytes) | no limit | the shortest block or more |
/// | [`zero_on_return`](Self::zero_on_return) | false | |
/// | [`track_stats`](Self::track_stats) | true | |
///
/// ```
/// use ramway_pool::BufferPool;
///
/// let pool = BufferPool::builder().min_buffer_size(4096).max_bytes(256 << 20).build()?;
/// assert_eq!(pool.stats().max_bytes, Some(256 << 20));
/// # Ok::<(), ramway_pool::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder makes nothing until `build` is called"]
pub struct Builder {
    tls_cache_size: Option<usize>,
    min_buffer_size: Option<usize>,
    max_buffers_per_shard: Option<usize>,
    num_shards: Option<usize>,
    pinned_memory: bool,
    huge_pages: bool,
    alignment: Option<usize>,
    max_bytes: Option<usize>,
    zero_on_return: bool,
    track_stats: Option<bool>,
}

impl Builder {
    /// How many buffers of each size class a thread keeps for itself: 0 to 64, by default 8, whatever the number of
    /// processors, because a thread's cache is its own.
    ///
    /// Half of them move between the thread and a shard at a time, so this is also how seldom a thread takes a lock
    /// that gets more buffers than it drops, or drops more than it gets. Of classes above 1 MiB it keeps fewer, 8 MiB
    /// of a class but at least one buffer. 0: threads keep nothing, and every get and drop takes a shard's lock.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::builder().tls_cache_size(32).build()?;
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn tls_cache_size(mut self, buffers: usize) -> Self {
        self.tls_cache_size = Some(buffers);
        self
    }

    /// The room of the shortest buffers in bytes: a power of two from 64 to 1 GiB, by default 1,024. A request for
    /// less gets a buffer out of memory of this length (its `capacity()` is still what was asked for), and vectors that
    /// are shorter are not kept.
    ///
    /// A pool whose buffers all have about the same length needs no other classes: with their length here, also what is
    /// shorter finds an idle buffer.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::builder().min_buffer_size(65536).build()?;
    /// drop(pool.get(65536));
    /// pool.get(10); // the same memory
    /// assert_eq!(pool.stats().allocations, 1);
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn min_buffer_size(mut self, bytes: usize) -> Self {
        self.min_buffer_size = Some(bytes);
        self
    }

    /// How many idle buffers a shard keeps, of all lengths together; what comes back beyond that is freed. Any number,
    /// by default max(1,024, 65,536 / [`num_shards`](Self::num_shards)): 65,536 in all shards, or more where there are
    /// more than 64 of them. What threads have in their caches does not count.
    ///
    /// It bounds a number, not bytes: a pool that grows frees idle memory before, and [`max_bytes`](Self::max_bytes) is
    /// the limit that nothing exceeds. 0: buffers are kept in the caches of threads only, and those that a thread drops
    /// and another one gets are allocated anew.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::builder().num_shards(1).max_buffers_per_shard(100).build()?;
    /// assert!(pool.preallocate(101, 1024).is_err());
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn max_buffers_per_shard(mut self, buffers: usize) -> Self {
        self.max_buffers_per_shard = Some(buffers);
        self
    }

    /// Into how many parts, each with a lock of its own, the idle buffers are divided that no thread has in its cache:
    /// a power of two from 1 to 256, by default min(64, the next power of two from `cpus` on).
    ///
    /// Fewer find a fitting buffer sooner and keep less memory, more make threads wait for each other less.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::builder().num_shards(4).build()?;
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn num_shards(mut self, shards: usize) -> Self {
        self.num_shards = Some(shards);
        self
    }

    /// Whether the memory is locked (`mlock`), so that it is never paged out and no access to it faults. By default
    /// not.
    ///
    /// Locked is what the pool owns, in use or idle, from its allocation until it is freed; buffers take whole pages,
    /// the shortest one page, and an allocation takes longer, because all pages are made at once. What the system
    /// refuses to lock (`RLIMIT_MEMLOCK`, `ulimit -l`) is used as it is: `unpinned_bytes` of the
    /// [statistics](crate::Stats) says how much that is, `pinned_bytes` how much is locked. Those of systems without
    /// `mlock` are all unpinned.
    ///
    /// The child of a `fork` inherits the memory, not the locks; and the parent's first write to each page after a fork
    /// faults, while the child is alive, because the page is copied then.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::builder().pinned_memory(true).build()?;
    /// let buffer = pool.get(1 << 20);
    /// let stats = pool.stats();
    /// assert_eq!(stats.pinned_bytes + stats.unpinned_bytes, 1 << 20);
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn pinned_memory(mut self, yes: bool) -> Self {
        self.pinned_memory = yes;
        self
    }

    /// Whether buffers of 2 MiB and more begin at a multiple of 2 MiB and ask for transparent huge pages
    /// (`madvise(MADV_HUGEPAGE)`), which fault and miss the TLB once where small pages do so 512 times. By default not.
    ///
    /// The request is a hint. It does nothing for shorter buffers, and nothing where the kernel is told never to
    /// (`/sys/kernel/mm/transparent_hugepage/enabled`), has no free huge page, or is not Linux;
    /// what a buffer has beyond whole 2 MiB may be in small pages. It does not reserve huge pages, nor take those of
    /// `hugetlbfs`, nor pages of 1 GiB. `AnonHugePages` in `/proc/self/smaps` says what was granted.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::builder().huge_pages(true).build()?;
    /// let tensor = pool.get(64 << 20);
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn huge_pages(mut self, yes: bool) -> Self {
        self.huge_pages = yes;
        self
    }

    /// Of what number the address is a multiple where each buffer begins: a power of two from 1 to 1 GiB, by default 1,
    /// which is what the global allocator gives (a multiple of 16, usually).
    ///
    /// For `O_DIRECT`: files that are opened so want the address, the length and the file's offset to be multiples of
    /// the device's logical sector, 512 or 4,096 bytes. This option makes the address one. The length is the caller's:
    /// a buffer's capacity is what was asked for, so ask for a multiple (`len.next_multiple_of(4096)`); the memory
    /// behind it is always one, a multiple of the alignment or, from alignments of a page on, of pages.
    ///
    /// For what is read from files at all: glibc gives long blocks 16 bytes behind the start of a page, and there some
    /// processors' copy from the page cache is at its slowest (AMD Zen 3: 1.1 to 1.5 GB/s, with 64 or 4,096 here 5 to 6.5).
    ///
    /// With an alignment above 1 the memory cannot be a vector's: `into_vec` copies, and `take` and `put` do not pool.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::builder().alignment(4096).build()?;
    /// let sectors = pool.get_zeroed(10_000_usize.next_multiple_of(4096));
    /// assert_eq!((sectors.as_ptr() as usize % 4096, sectors.len() % 4096), (0, 0));
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn alignment(mut self, bytes: usize) -> Self {
        self.alignment = Some(bytes);
        self
    }

    /// The most that the pool ever owns in bytes, what is in use and what is idle together. By default there is no
    /// limit (`usize::MAX`).
    ///
    /// At the limit idle memory is freed, that in the caches of other threads included; if that is not enough,
    /// [`try_get`](BufferPool::try_get) gives [`LimitReached`](ErrorKind::LimitReached). What counts is the length of
    /// the memory, not what was asked for: an eighth more at most where it is allocated, besides whole pages and
    /// multiples of the alignment, and half as much again where a longer buffer was idle. Vectors that were taken are
    /// the caller's and do not count. It must allow at least one buffer, the shortest.
    ///
    /// ```
    /// use ramway_pool::{BufferPool, ErrorKind};
    ///
    /// let pool = BufferPool::builder().max_bytes(100_000).build()?;
    /// assert_eq!(pool.try_get(200_000).unwrap_err().kind(), ErrorKind::LimitReached);
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Whether a buffer's memory is filled with zeros when it comes back, so that secrets do not stay in it. By default
    /// not.
    ///
    /// It is not needed for soundness: no safe call shows old bytes with or without it. It costs what filling the
    /// memory costs, all of it and not only what was written, at each drop. Memory that leaves the pool (`into_vec`,
    /// `take`) is not filled when it is freed.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::builder().zero_on_return(true).build()?;
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn zero_on_return(mut self, yes: bool) -> Self {
        self.zero_on_return = yes;
        self
    }

    /// Whether `gets` and `hits` of the [statistics](crate::Stats) are counted. By default they are: a thread counts in
    /// its own memory. The other figures are there in any case, because the pool needs them.
    ///
    /// ```
    /// let pool = ramway_pool::BufferPool::builder().track_stats(false).build()?;
    /// drop(pool.get(1));
    /// assert_eq!((pool.stats().gets, pool.stats().allocations), (0, 1));
    /// # Ok::<(), ramway_pool::Error>(())
    /// ```
    pub fn track_stats(mut self, yes: bool) -> Self {
        self.track_stats = Some(yes);
        self
    }

    /// A pool with these options. It allocates no buffer yet.
    ///
    /// # Errors
    /// [`InvalidOption`](ErrorKind::InvalidOption) for an option out of its range; the message names it, its value and
    /// what is allowed.
    ///
    /// ```
    /// use ramway_pool::{BufferPool, ErrorKind};
    ///
    /// let error = BufferPool::builder().alignment(1000).build().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::InvalidOption);
    /// let text = "alignment is 1000: it must be a power of two from 1 to 1073741824, 1024 for example";
    /// assert_eq!(error.to_string(), text);
    /// ```
    pub fn build(&self) -> Result<BufferPool> {
        Ok(BufferPool::from_options(self.check()?))
    }

    fn check(&self) -> Result<Options> {
        let num_shards = self.num_shards.unwrap_or_else(|| default_shards(topology::cpus()));
        let options = Options {
            tls_cache_size: self.tls_cache_size.unwrap_or(8),
            min_buffer_size: self.min_buffer_size.unwrap_or(1024),
            num_shards,
            max_buffers_per_shard: self.max_buffers_per_shard.unwrap_or_else(|| default_buffers(num_shards)),
            pinned_memory: self.pinned_memory,
            huge_pages: self.huge_pages,
            alignment: self.alignment.unwrap_or(1),
            max_bytes: self.max_bytes.unwrap_or(usize::MAX),
            zero_on_return: self.zero_on_return,
            track_stats: self.track_stats.unwrap_or(true),
        };
        if options.tls_cache_size > 64 {
            return Err(wrong("tls_cache_size", options.tls_cache_size, "it must be from 0 to 64"));
        }
        power_of_two("min_buffer_size", options.min_buffer_size, class::SMALLEST, 1 << 30)?;
        power_of_two("num_shards", options.num_shards, 1, 256)?;
        power_of_two("alignment", options.alignment, 1, 1 << 30)?;
        let shortest = options.shortest();
        if options.max_bytes < shortest {
            let rule = format!("the shortest buffer takes {shortest}; allow at least that, or lower min_buffer_size");
            return Err(wrong("max_bytes", options.max_bytes, rule));
        }
        Ok(options)
    }
}

fn default_shards(cpus: usize) -> usize {
    cpus.min(64).next_power_of_two()
}

fn default_buffers(shards: usize) -> usize {
    // 0 is refused, but later.
    (IDLE_BUFFERS / shards.max(1)).max(1024)
}

fn power_of_two(option: &str, value: usize, least: usize, most: usize) -> Result<()> {
    if value.is_power_of_two() && (least..=most).contains(&value) {
        return Ok(());
    }
    let near = value.clamp(least, most).next_power_of_two();
    Err(wrong(option, value, format!("it must be a power of two from {least} to {most}, {near} for example")))
}

fn wrong(option: &str, value: usize, rule: impl Display) -> Error {
    Error::new(ErrorKind::InvalidOption, format!("{option} is {value}: {rule}"))
}

/// The options, checked and with every default filled in.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Buffers of a size class that a thread keeps: 0..=64.
    pub(crate) tls_cache_size: usize,
    /// A power of two, 64..=1 GiB.
    pub(crate) min_buffer_size: usize,
    /// Idle buffers that a shard keeps, of all classes together: 0..
    pub(crate) max_buffers_per_shard: usize,
    /// A power of two, 1..=256.
    pub(crate) num_shards: usize,
    /// Lock the memory.
    pub(crate) pinned_memory: bool,
    /// Ask for huge pages.
    pub(crate) huge_pages: bool,
    /// A power of two, 1..=1 GiB; 1: whatever the allocator gives.
    pub(crate) alignment: usize,
    /// Of all that the pool owns; `usize::MAX`: no limit.
    pub(crate) max_bytes: usize,
    /// Overwrite what a buffer held before anybody else can get it.
    pub(crate) zero_on_return: bool,
    /// Count gets and hits.
    pub(crate) track_stats: bool,
}

impl Options {
    pub(crate) fn kind(&self) -> Kind {
        Kind { align: self.alignment, pinned: self.pinned_memory, huge: self.huge_pages }
    }

    /// The class of the shortest blocks. Where they are rounded up there are no shorter ones, which would only waste
    /// what they are rounded by.
    pub(crate) fn smallest_class(&self) -> usize {
        class::of(memory::size_of(&self.kind(), self.min_buffer_size))
    }

    /// Bytes of the shortest block.
    fn shortest(&self) -> usize {
        memory::size_of(&self.kind(), class::size(self.smallest_class()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_follow_the_formulas_of_the_documentation() {
        let table = [(1, 1), (2, 2), (3, 4), (6, 8), (63, 64), (64, 64), (65, 64), (384, 64)];
        for (cpus, shards) in table {
            assert_eq!(default_shards(cpus), shards, "{cpus}");
        }
        for (shards, buffers) in [(1, 65_536), (2, 32_768), (64, 1024), (256, 1024)] {
            assert_eq!(default_buffers(shards), buffers, "{shards}");
        }
        let options = Builder::default().check().unwrap();
        assert_eq!((options.tls_cache_size, options.min_buffer_size, options.alignment), (8, 1024, 1));
        assert_eq!(options.num_shards, default_shards(topology::cpus()));
        assert_eq!(options.max_buffers_per_shard, default_buffers(options.num_shards));
        assert!(options.track_stats && !options.zero_on_return && !options.pinned_memory && !options.huge_pages);
        assert_eq!(options.max_bytes, usize::MAX);
        assert_eq!(Builder::default().num_shards(256).check().unwrap().max_buffers_per_shard, 1024);
    }

    #[test]
    fn the_shortest_block_is_what_its_kind_makes_of_the_shortest_buffer() {
        let shortest = |builder: &Builder| builder.check().unwrap().shortest();
        let builder = Builder::default().min_buffer_size(64);
        assert_eq!(shortest(&builder), 64);
        assert_eq!(shortest(&builder.clone().alignment(4096)), 4096);
        assert_eq!(shortest(&builder.clone().huge_pages(true)), 64);
        let page = memory::size_of(&builder.clone().pinned_memory(true).check().unwrap().kind(), 1);
        assert_eq!(shortest(&builder.clone().pinned_memory(true)), page.max(64));
    }
}
