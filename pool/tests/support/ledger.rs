//! An allocator that keeps books: it ends the process when memory is given back that is not its own, twice, with another
//! length than it was asked for, or after somebody wrote beyond its end or before its beginning.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// To be a test binary's `#[global_allocator]`.
pub struct Ledger;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static BLOCKS: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static REFUSE_FROM: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Shorter allocations, and those that are aligned, are hardly a pool's.
const BUFFER: usize = 1024;

/// Bytes of all byte vectors of [`BUFFER`] or more that were allocated and not given back.
pub fn live() -> usize {
    LIVE.load(SeqCst)
}

/// How many allocations of whatever kind were not given back.
pub fn blocks() -> usize {
    BLOCKS.load(SeqCst)
}

/// The most that [`live`] ever was.
pub fn peak() -> usize {
    PEAK.load(SeqCst)
}

/// There is no memory any more for byte vectors of this length and above.
pub fn refuse_from(len: usize) {
    REFUSE_FROM.store(len, SeqCst);
}

const ALIVE: usize = 0x5afe_a110_c8ed_b10c;
const DEAD: usize = 0xdead_b10c_dead_b10c;
/// Bytes of a block's head, and of the seal behind it. None under miri, which checks all of that by itself and does not let
/// a pointer to the caller's part reach beyond it.
const EDGE: usize = if cfg!(miri) { 0 } else { 16 };

fn counts(layout: Layout) -> bool {
    layout.align() == 1 && layout.size() >= BUFFER
}

/// The whole block for what was asked for, and where the caller's part begins.
fn whole(layout: Layout) -> Option<(Layout, usize)> {
    if EDGE == 0 {
        return Some((layout, 0));
    }
    let align = layout.align().max(EDGE);
    let size = layout.size().checked_add(align)?.checked_add(EDGE)?;
    // A head of `EDGE` bytes right before the caller's part, and as much behind it.
    Some((Layout::from_size_align(size, align).ok()?, align))
}

fn seal(at: *mut u8, layout: Layout) -> [usize; 2] {
    [ALIVE ^ at as usize, layout.size() ^ ALIVE.rotate_left(7)]
}

fn wrong(what: &str) -> ! {
    // SAFETY: writes a string to stderr; nothing may allocate here.
    unsafe { libc::write(2, what.as_ptr().cast(), what.len()) };
    std::process::abort();
}

impl Ledger {
    fn give(layout: Layout, allocate: unsafe fn(&System, Layout) -> *mut u8) -> *mut u8 {
        if counts(layout) && layout.size() >= REFUSE_FROM.load(SeqCst) {
            return std::ptr::null_mut();
        }
        let Some((all, offset)) = whole(layout) else { return std::ptr::null_mut() };
        // SAFETY: the size is not 0.
        let base = unsafe { allocate(&System, all) };
        if base.is_null() {
            return base;
        }
        // SAFETY: `all` has room for the head before and the seal behind.
        unsafe {
            let at = base.add(offset);
            if EDGE > 0 {
                at.sub(EDGE).cast::<[usize; 2]>().write(seal(at, layout));
                at.add(layout.size()).cast::<[usize; 2]>().write_unaligned(seal(at, layout));
            }
            BLOCKS.fetch_add(1, SeqCst);
            if counts(layout) {
                PEAK.fetch_max(LIVE.fetch_add(layout.size(), SeqCst) + layout.size(), SeqCst);
            }
            at
        }
    }
}

// SAFETY: what it gives lies within what the system's allocator gave, aligned as asked, and `dealloc` finds it again.
unsafe impl GlobalAlloc for Ledger {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::give(layout, |system, all| {
            // SAFETY: passed on.
            unsafe { system.alloc(all) }
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::give(layout, |system, all| {
            // SAFETY: passed on.
            unsafe { system.alloc_zeroed(all) }
        })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let Some((all, offset)) = whole(layout) else { wrong("a layout that nobody got\n") };
        // SAFETY: if it is one of ours, head and seal are there; if not, this test says so or crashes.
        unsafe {
            if EDGE > 0 {
                let head = at.sub(EDGE).cast::<[usize; 2]>();
                match head.read() {
                    [DEAD, _] => wrong("memory is given back twice\n"),
                    found if found != seal(at, layout) => {
                        wrong("memory is given back that is not this long, or not ours\n")
                    }
                    _ => {}
                }
                if at.add(layout.size()).cast::<[usize; 2]>().read_unaligned() != seal(at, layout) {
                    wrong("somebody wrote beyond the end of a block\n");
                }
                head.write([DEAD; 2]);
            }
            // Who still reads it finds no mark.
            at.write_bytes(0xdd, layout.size());
            BLOCKS.fetch_sub(1, SeqCst);
            if counts(layout) {
                LIVE.fetch_sub(layout.size(), SeqCst);
            }
            System.dealloc(at.sub(offset), all);
        }
    }
}
