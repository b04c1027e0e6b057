//! Where a pool's blocks come from: the global allocator, or a mapping for each.
//!
//! Which of the two is decided by the kind and the size, so that `free` finds out what `allocate` did without a word of
//! its own per block:
//!
//! - plain blocks are what a `Vec<u8>` of this capacity would have allocated, so that one can own them;
//! - pinned blocks have a mapping each: the kernel locks whole pages, and two blocks that share one would be unlocked
//!   together;
//! - blocks of 2 MiB and more that ask for huge pages have a mapping that begins where a huge page can; shorter ones
//!   have no use for that and are treated as if they did not ask;
//! - aligned blocks come from the global allocator up to [`MAPPED_FROM`]. From there on, or with alignments beyond a
//!   page, they have a mapping, which the allocator would make as well, but with slack, and would zero by hand.

use crate::block::Block;
use crate::error::{Error, ErrorKind, Result};
use std::alloc::{self, Layout};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// The length from which aligned blocks have mappings: from here on the C library makes one too, and then zeroes it by
/// hand (256 KiB of zeros: 209 us against 6 us; shorter ones, that it has at hand, 1 us against 6 us).
const MAPPED_FROM: usize = 128 << 10;

/// Bytes of a huge page, where there are any: those of x86-64, and of aarch64 with pages of 4 KiB.
const HUGE: usize = 2 << 20;

/// What all blocks of a pool have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// A power of two; 1: whatever the allocator gives.
    pub(crate) align: usize,
    /// Locked in memory.
    pub(crate) pinned: bool,
    /// Huge pages wanted.
    pub(crate) huge: bool,
}

/// Whether a block is locked in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pinned {
    NotAsked,
    Yes,
    /// The system forbade it: the block is usable all the same.
    Refused,
}

/// Where a block comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The global allocator, with this alignment.
    Heap(usize),
    /// A mapping that begins at a multiple of this.
    Mapping(usize),
}

impl Kind {
    /// Whether the blocks are something else than what a `Vec<u8>` would have allocated.
    pub(crate) fn mapped(&self) -> bool {
        self.align > 1 || self.pinned || self.huge
    }

    fn source(&self, size: usize) -> Source {
        let huge = self.huge && size >= HUGE;
        let align = if huge { self.align.max(HUGE) } else { self.align };
        let wide = self.align > page_size() || (self.align > 1 && size >= MAPPED_FROM);
        if os::MAPS && (self.pinned || huge || wide) { Source::Mapping(align) } else { Source::Heap(align) }
    }
}

/// How many bytes [`allocate`] takes for a block of `size`: in a mapping whole pages, and whole huge pages where that
/// costs at most an eighth; else a multiple of the alignment, because what lies between two such blocks is lost to
/// others of their kind. What it gives for `size` it also gives for what it gave.
pub(crate) fn size_of(kind: &Kind, size: usize) -> usize {
    // A size that cannot be rounded cannot be allocated either.
    let round = |size: usize, unit: usize| size.checked_next_multiple_of(unit).unwrap_or(size);
    let Source::Mapping(_) = kind.source(size) else { return round(size, kind.align) };
    let pages = round(size, page_size());
    let huge = round(pages, HUGE);
    if kind.huge && pages >= HUGE && huge - pages <= pages / 8 { huge } else { pages }
}

/// A block of [`size_of`]`(size)` bytes, and whether it is locked in memory; zeros if `zeroed`, else possibly anything.
///
/// # Errors
/// `OutOfMemory`.
pub(crate) fn allocate(kind: &Kind, size: usize, zeroed: bool) -> Result<(Block, Pinned)> {
    debug_assert!(size > 0 && kind.align.is_power_of_two());
    let cap = size_of(kind, size);
    let ptr = match kind.source(cap) {
        Source::Heap(align) => Layout::from_size_align(cap, align).ok().and_then(|layout| {
            // SAFETY: the layout is not of size 0.
            NonNull::new(unsafe { if zeroed { alloc::alloc_zeroed(layout) } else { alloc::alloc(layout) } })
        }),
        Source::Mapping(align) => os::map(cap, align),
    };
    let ptr = ptr.ok_or_else(|| {
        let text = format!("a buffer of {cap} bytes: the system has no memory for it; drop buffers, or ask for less");
        Error::new(ErrorKind::OutOfMemory, text)
    })?;
    let block = Block { ptr, cap };
    if kind.huge && cap >= HUGE {
        // SAFETY: the mapping from above, which nobody uses yet.
        unsafe { os::want_huge_pages(block) };
    }
    // After the wish for huge pages: locking has all pages made.
    let pinned = match kind.pinned {
        false => Pinned::NotAsked,
        // SAFETY: as above.
        true if unsafe { os::lock(block) } => Pinned::Yes,
        true => Pinned::Refused,
    };
    Ok((block, pinned))
}

/// Gives a block back to where it came from. A pinned one is unlocked by that.
///
/// # Safety
/// The block is from [`allocate`] with this kind, or from a `Vec<u8>` of this capacity if the kind is not
/// [`mapped`](Kind::mapped), and nobody uses it any more.
pub(crate) unsafe fn free(kind: &Kind, block: Block) {
    match kind.source(block.cap) {
        // SAFETY: allocated with this size and alignment, as the caller promises.
        Source::Heap(align) => unsafe {
            alloc::dealloc(block.ptr.as_ptr(), Layout::from_size_align_unchecked(block.cap, align));
        },
        // SAFETY: mapped with this length.
        Source::Mapping(_) => unsafe { os::unmap(block) },
    }
}

/// Has every page of a block made, and leaves what is in it.
///
/// # Safety
/// The block is the caller's alone.
pub(crate) unsafe fn touch(block: Block) {
    // SAFETY: the caller's promise.
    if unsafe { os::populate(block) } {
        return;
    }
    // One byte of each page, and of the last one that a block has but the end of.
    for at in (0..block.cap).step_by(page_size()).chain([block.cap - 1]) {
        // SAFETY: within the block. Its bytes may be uninitialised, which their type allows; volatile, because a value
        // that is written back where it came from would not be written at all.
        unsafe {
            let byte = block.ptr.as_ptr().add(at).cast::<MaybeUninit<u8>>();
            byte.write_volatile(byte.read_volatile());
        }
    }
}

/// Fills a block with zeros, also if it is never read again.
///
/// # Safety
/// The block is the caller's alone.
pub(crate) unsafe fn zero(block: Block) {
    // SAFETY: the caller's promise.
    unsafe { block.ptr.as_ptr().write_bytes(0, block.cap) };
    // What might read all memory, as far as the compiler can know, keeps the zeros from being left out.
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) block.ptr.as_ptr(), options(nostack, preserves_flags));
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    std::hint::black_box(block.ptr);
}

/// Bytes of a page of memory.
fn page_size() -> usize {
    os::page_size()
}

#[cfg(all(unix, not(miri)))]
mod os {
    use crate::block::Block;
    use std::ptr::{self, NonNull};
    use std::sync::OnceLock;

    /// Whether there are mappings.
    pub(super) const MAPS: bool = true;

    pub(super) fn page_size() -> usize {
        static SIZE: OnceLock<usize> = OnceLock::new();
        // SAFETY: it reads a constant of the system.
        *SIZE.get_or_init(|| usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096))
    }

    /// `len` zeros, whole pages, beginning at a multiple of `align`.
    pub(super) fn map(len: usize, align: usize) -> Option<NonNull<u8>> {
        let slack = align.saturating_sub(page_size());
        let whole = len.checked_add(slack)?;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        // SAFETY: a new mapping where the kernel likes touches nothing that exists.
        let base = unsafe { libc::mmap(ptr::null_mut(), whole, access, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        let base = base.cast::<u8>();
        let before = base.align_offset(align);
        let start = base.wrapping_add(before);
        for (at, surplus) in [(base, before), (start.wrapping_add(len), slack - before)] {
            if surplus > 0 {
                // SAFETY: whole pages of the mapping from above, beside what is kept of it.
                unsafe { libc::munmap(at.cast(), surplus) };
            }
        }
        NonNull::new(start)
    }

    /// # Safety
    /// The block is from [`map`] and nobody uses it any more.
    pub(super) unsafe fn unmap(block: Block) {
        // SAFETY: the caller's promise.
        unsafe {
            if libc::munmap(block.ptr.as_ptr().cast(), block.cap) != 0 {
                // Only where the hole would need more mappings than the system lets a process have: then the addresses
                // stay, but not the memory.
                libc::munlock(block.ptr.as_ptr().cast(), block.cap);
                libc::madvise(block.ptr.as_ptr().cast(), block.cap, libc::MADV_DONTNEED);
            }
        }
    }

    /// Locks a block in memory; whether it is.
    ///
    /// # Safety
    /// The block is from [`map`].
    pub(super) unsafe fn lock(block: Block) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let locked = libc::mlock(block.ptr.as_ptr().cast(), block.cap) == 0;
            if !locked {
                // A lock that fails late, for lack of memory, leaves the pages locked that it has come to.
                libc::munlock(block.ptr.as_ptr().cast(), block.cap);
            }
            locked
        }
    }

    /// # Safety
    /// The block is from [`map`].
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
    pub(super) unsafe fn want_huge_pages(block: Block) {
        #[cfg(target_os = "linux")]
        // SAFETY: advice changes no byte. It fails where the kernel has no huge pages: then there are small ones.
        unsafe {
            libc::madvise(block.ptr.as_ptr().cast(), block.cap, libc::MADV_HUGEPAGE);
        }
    }

    /// Has all pages made with one call; `false` where the kernel does not offer that.
    ///
    /// # Safety
    /// The block is the caller's.
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
    pub(super) unsafe fn populate(block: Block) -> bool {
        #[cfg(target_os = "linux")]
        {
            let before = block.ptr.as_ptr() as usize % page_size();
            let first = block.ptr.as_ptr().wrapping_sub(before);
            // The first and the last page may be somebody else's too, who finds in them what was there.
            // SAFETY: it changes no byte. Linux 5.14 and later.
            unsafe { libc::madvise(first.cast(), block.cap + before, libc::MADV_POPULATE_WRITE) == 0 }
        }
        #[cfg(not(target_os = "linux"))]
        false
    }
}

/// No mappings: what asks for one gets an aligned block of the global allocator's.
#[cfg(not(all(unix, not(miri))))]
mod os {
    use crate::block::Block;
    use std::ptr::NonNull;

    pub(super) const MAPS: bool = false;

    pub(super) fn page_size() -> usize {
        4096
    }

    pub(super) fn map(_len: usize, _align: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) unsafe fn unmap(_block: Block) {}

    pub(super) unsafe fn lock(_block: Block) -> bool {
        false
    }

    pub(super) unsafe fn want_huge_pages(_block: Block) {}

    pub(super) unsafe fn populate(_block: Block) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Kind = Kind { align: 1, pinned: false, huge: false };

    fn kinds() -> impl Iterator<Item = Kind> {
        let aligns = [1, 64, 4096, 4 << 20];
        let all = aligns.into_iter().flat_map(|align| [(align, false), (align, true)]);
        all.flat_map(|(align, huge)| [false, true].map(|pinned| Kind { align, pinned, huge }))
    }

    fn sizes() -> impl Iterator<Item = usize> {
        let around = [4096, MAPPED_FROM, HUGE, 9 << 18, 15 << 18];
        [1, 64, 1000].into_iter().chain(around.into_iter().flat_map(|size: usize| [size - 1, size, size + 1]))
    }

    #[test]
    fn a_block_is_as_long_and_aligned_as_its_kind_wants_and_zeroed_if_asked() {
        let zeros = vec![0; 8 << 20];
        for (kind, size) in kinds().flat_map(|kind| sizes().map(move |size| (kind, size))) {
            let cap = size_of(&kind, size);
            assert!(cap >= size && size_of(&kind, cap) == cap, "{kind:?} {size} {cap}");
            // An eighth, a page, or a multiple of a large alignment, whichever is most.
            assert!(cap - size <= (size / 8).max(page_size()).max(kind.align), "{kind:?} {size} {cap}");
            for zeroed in [false, true] {
                let (block, pinned) = allocate(&kind, size, zeroed).unwrap();
                assert_eq!((block.cap, block.ptr.as_ptr().addr() % kind.align), (cap, 0), "{kind:?} {size}");
                assert_eq!(pinned == Pinned::NotAsked, !kind.pinned);
                if kind.huge && size >= HUGE && os::MAPS {
                    assert_eq!(block.ptr.as_ptr().addr() % HUGE, 0, "{kind:?} {size}");
                }
                // SAFETY: the block is ours; `zeroed` says what is in it, or `zero` does.
                unsafe {
                    touch(block);
                    if !zeroed {
                        block.ptr.as_ptr().write_bytes(7, cap);
                        touch(block);
                        assert_eq!((*block.ptr.as_ptr(), *block.ptr.as_ptr().add(cap - 1)), (7, 7));
                        zero(block);
                    }
                    assert!(*std::slice::from_raw_parts(block.ptr.as_ptr(), cap) == zeros[..cap]);
                    free(&kind, block);
                }
            }
        }
    }

    #[test]
    fn a_vector_can_own_a_plain_block_and_a_pool_a_vector() {
        let (block, _) = allocate(&PLAIN, 1000, true).unwrap();
        // SAFETY: plain blocks are allocated as a vector's memory is.
        let vector = unsafe { Vec::from_raw_parts(block.ptr.as_ptr(), 1000, block.cap) };
        assert_eq!(vector, [0; 1000]);
        let mut vector = std::mem::ManuallyDrop::new(vector);
        let block = Block { ptr: NonNull::new(vector.as_mut_ptr()).unwrap(), cap: vector.capacity() };
        // SAFETY: from a vector that is not used any more.
        unsafe { free(&PLAIN, block) };
    }

    #[test]
    fn what_the_system_does_not_have_is_an_error_that_says_how_much_it_was() {
        for kind in [PLAIN, Kind { align: 4096, ..PLAIN }, Kind { huge: true, ..PLAIN }] {
            for size in [1 << 62, usize::MAX - 5] {
                let error = allocate(&kind, size, false).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::OutOfMemory);
                assert!(error.to_string().contains(&size_of(&kind, size).to_string()), "{error}");
            }
        }
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn touching_has_all_pages_made() {
        for (align, size) in [(1, 300_000), (4096, 1 << 20)] {
            let kind = Kind { align, ..PLAIN };
            let (block, _) = allocate(&kind, size, false).unwrap();
            // SAFETY: the block is ours, and `mincore` writes one byte for each of its pages.
            unsafe {
                touch(block);
                let first = block.ptr.as_ptr().map_addr(|addr| addr & !(page_size() - 1));
                let end = block.ptr.as_ptr().addr() + block.cap;
                let mut resident = vec![0_u8; (end - first.addr()).div_ceil(page_size())];
                assert_eq!(libc::mincore(first.cast(), end - first.addr(), resident.as_mut_ptr()), 0);
                assert!(resident.iter().all(|page| page & 1 == 1), "{resident:?}");
                free(&kind, block);
            }
        }
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn what_is_mapped_to_find_an_aligned_address_is_given_back() {
        let addresses = || {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
            pages.split(' ').next().unwrap().parse::<usize>().unwrap() * page_size()
        };
        let kind = Kind { align: 64 << 20, ..PLAIN };
        let before = addresses();
        let blocks: Vec<_> = (0..500).map(|_| allocate(&kind, 4096, false).unwrap().0).collect();
        // 32 GiB if they were not; other tests take some as well.
        assert!(addresses() < before + (8 << 30));
        // SAFETY: ours, and not used any more.
        blocks.into_iter().for_each(|block| unsafe { free(&kind, block) });
    }
}
