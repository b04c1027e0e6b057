//! What the two ends of a ring have in common: a core handle, the memory that JavaScript works on, and who keeps it mapped.

use crate::apart::Apart;
use crate::buffer::{Buffer, Owner, over};
use crate::error::{OrThrow, refuse};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use ramway::ring::raw::WaitLimit;
use ramway::ring::window::Window;
use ramway::{ErrorKind, WaitPolicy};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Two mappings of a capacity, as one ArrayBuffer, must stay below what the runtimes allow (4 GiB), and an index into
/// them as 32-bit numbers below 2^31.
const CAPACITY_MAX: usize = 1 << 30;
/// Bytes of a ring's block in the header page.
const BLOCK: usize = size_of::<ramway::layout::RingBlock>();

/// The memory of an end, and where its JavaScript half begins.
#[napi(object, object_from_js = false)]
pub struct Memory {
    /// The ring's block of the header page (docs/ABI.md).
    #[napi(ts_type = "ArrayBuffer")]
    pub header: Buffer,
    /// The data, twice.
    #[napi(ts_type = "ArrayBuffer")]
    pub data: Buffer,
    /// Bytes of the data area.
    pub capacity: u32,
    /// Every payload begins on a multiple of this many bytes.
    pub align: u32,
    /// This side's position.
    pub position: BigInt,
    /// The other side's position.
    pub peer: BigInt,
    /// The other side's flags as last acted upon.
    pub peer_flags: u32,
    /// Whether the other side's orderly close is the end for good.
    #[napi(js_name = "final")]
    pub is_final: bool,
    /// The address of the data, modulo 4096.
    pub address: u32,
}

/// A core handle that several objects share. Used by the JavaScript thread alone; the lock is there for the types.
pub(crate) struct Shared<T> {
    core: Mutex<Option<T>>,
    what: &'static str,
}

impl<T: Send + 'static> Shared<T> {
    pub(crate) fn new(core: T, what: &'static str) -> Arc<Self> {
        Arc::new(Self { core: Mutex::new(Some(core)), what })
    }

    /// The handle; an error once it is closed.
    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        match &mut *self.lock() {
            Some(core) => run(core),
            None => Err(refuse(ErrorKind::Detached, format_args!("this {} is closed", self.what))),
        }
    }

    /// The handle itself, once.
    pub(crate) fn take(&self) -> Option<T> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers of a hot path's state.
pub(crate) struct Start {
    pub(crate) block: *const ramway::layout::RingBlock,
    pub(crate) data: *const u8,
    pub(crate) capacity: u64,
    pub(crate) align: u32,
    pub(crate) position: u64,
    pub(crate) peer: u64,
    pub(crate) peer_flags: u32,
    pub(crate) is_final: bool,
}

/// A window over an end's data, and what else must live as long as views of it.
pub(crate) struct Views {
    window: Arc<Apart<Window>>,
    data: *const u8,
    capacity: usize,
    end: Owner,
    /// A view was handed out.
    lent: AtomicBool,
}

// SAFETY: `data` is only the address by which the window is told what is meant.
unsafe impl Send for Views {}

impl Views {
    /// `end` keeps the role while a view lives.
    pub(crate) fn new(window: Window, start: &Start, end: Owner) -> Result<Self> {
        let capacity = start.capacity as usize;
        if capacity > CAPACITY_MAX {
            let text = format!("a ring of {capacity} bytes: JavaScript works with rings of up to {CAPACITY_MAX} bytes");
            return Err(refuse(ErrorKind::Unsupported, text));
        }
        Ok(Self { window: Apart::new(window, capacity), data: start.data, capacity, end, lent: AtomicBool::new(false) })
    }

    /// A buffer over `len` bytes from `offset` of the doubled data.
    pub(crate) fn lend(&self, env: &Env, offset: u32, len: u32) -> Result<Buffer> {
        // Relaxed: this thread alone looks at it.
        self.lent.store(true, Ordering::Relaxed);
        self.buffer(env, offset as usize, len as usize)
    }

    fn buffer(&self, env: &Env, offset: usize, len: usize) -> Result<Buffer> {
        self.check(offset, len)?;
        let start = self.start()?.wrapping_add(offset);
        // SAFETY: within the window, which is unmapped once no buffer over it is left, or by `close`, before which all of
        // them are detached.
        unsafe { over(env, start, len, (Arc::clone(&self.window), Arc::clone(&self.end))) }
    }

    /// Where the window has the data.
    fn start(&self) -> Result<*mut u8> {
        let start = self.window.with(|window| window.at(self.data));
        start.ok_or_else(|| refuse(ErrorKind::Detached, "its memory is unmapped"))
    }

    /// Unmaps the window. All buffers over it are detached.
    pub(crate) fn close(&self) {
        // Relaxed: as above.
        self.window.close(self.lent.load(Ordering::Relaxed));
    }

    fn check(&self, offset: usize, len: usize) -> Result<()> {
        if offset + len <= 2 * self.capacity { Ok(()) } else { Err(refuse(ErrorKind::InvalidArgument, "out of range")) }
    }

    /// Puts private memory in the place of bytes whose buffer was transferred away, and a new window in the place of
    /// this one.
    ///
    /// # Safety
    /// The end is attached, and the bytes are a lent frame or an open slot of it.
    pub(crate) unsafe fn cut(&mut self, env: &Env, next: Window, offset: u32, len: u32) -> Result<Buffer> {
        self.check(offset as usize, len as usize)?;
        let start = self.data.wrapping_add(offset as usize);
        // SAFETY: the caller's promise.
        self.window.with(|window| unsafe { window.cut(start, len as usize) }).transpose().or_throw()?;
        // The one before is whose who has the buffer.
        self.window = Apart::new(next, self.capacity);
        self.whole(env)
    }

    /// The doubled data, for the hot path.
    fn whole(&self, env: &Env) -> Result<Buffer> {
        self.buffer(env, 0, 2 * self.capacity)
    }

    pub(crate) fn memory(&self, env: &Env, start: &Start) -> Result<Memory> {
        // SAFETY: the block is mapped while the end is attached; `close` detaches this buffer first.
        let header = unsafe { over(env, start.block.cast_mut().cast(), BLOCK, Arc::clone(&self.end)) }?;
        Ok(Memory {
            header,
            data: self.whole(env)?,
            capacity: self.capacity as u32,
            align: start.align,
            position: BigInt::from(start.position),
            peer: BigInt::from(start.peer),
            peer_flags: start.peer_flags,
            is_final: start.is_final,
            address: (self.start()?.addr() % 4096) as u32,
        })
    }
}

/// Both positions of an end as its JavaScript half knows them: 32-bit halves, because numbers of JavaScript hold 53 bits
/// and its BigInts are slow to make.
#[napi(object, object_to_js = false)]
pub struct Positions {
    /// This side's: everything before it is released, or published.
    pub low: u32,
    /// Its high half.
    pub high: u32,
    /// The other side's, as last seen.
    pub peer_low: u32,
    /// Its high half.
    pub peer_high: u32,
}

impl Positions {
    pub(crate) fn own(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }

    pub(crate) fn peer(&self) -> u64 {
        u64::from(self.peer_high) << 32 | u64::from(self.peer_low)
    }
}

/// A wait that JavaScript can use: `None` forever; at most this many milliseconds at a time are waited.
pub(crate) fn wait_limit(milliseconds: f64) -> WaitLimit {
    WaitLimit::For(Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or_default())
}

/// True if what was waited for is there, false if the time was up.
pub(crate) fn waited(outcome: ramway::Result<()>) -> Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(e) if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::Interrupted) => Ok(false),
        Err(e) => Err(crate::error::thrown(&e)),
    }
}

/// The epoch of a peer that came, none if the time was up.
pub(crate) fn peer_within(outcome: ramway::Result<u32>) -> Result<Option<u32>> {
    match outcome {
        Ok(epoch) => Ok(Some(epoch)),
        Err(e) if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::Empty | ErrorKind::Interrupted) => Ok(None),
        Err(e) => Err(crate::error::thrown(&e)),
    }
}

pub(crate) fn policy(name: &str) -> Result<WaitPolicy> {
    match name {
        "spin" => Ok(WaitPolicy::Spin),
        "hybrid" => Ok(WaitPolicy::Hybrid),
        "block" => Ok(WaitPolicy::Block),
        other => {
            let text = format!("wait: {other:?} is none of 'spin', 'hybrid' and 'block'");
            Err(refuse(ErrorKind::InvalidArgument, text))
        }
    }
}
