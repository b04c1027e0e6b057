//! The memory of an endpoint as ArrayBuffers.

use crate::apart::Apart;
use crate::buffer::{Buffer, Owner, over};
use crate::error::{OrThrow, refuse};
use crate::topic::TopicMemory;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use ramway::ErrorKind;
use ramway::layout::{RingBlock, TopicBlock};
use ramway::ring::raw::Start;
use ramway::ring::window::Window;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Two mappings of a capacity, as one ArrayBuffer, must stay below what the runtimes allow (4 GiB), and an index into
/// them as 32-bit numbers below 2^31.
const CAPACITY_MAX: usize = 1 << 30;

/// The memory of an end, and where its JavaScript half begins.
#[napi(object, object_from_js = false)]
pub struct Memory {
    /// The ring's or topic's block of the header page (docs/ABI.md).
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
    /// Of a sender: bytes of the longest message.
    pub max_message_length: u32,
    /// Of a sender: which of the two last-tag records is written next.
    pub next_last_tag: u32,
    /// What only a topic has.
    pub topic: Option<TopicMemory>,
}

/// A window over an end's data, and what else must live as long as views of it.
pub(crate) struct Views {
    /// None of what gives out no views.
    window: Option<Arc<Apart<Window>>>,
    data: *const u8,
    capacity: usize,
    end: Owner,
    /// A view was handed out.
    viewed: AtomicBool,
}

// SAFETY: `data` is only the address by which the window finds the place.
unsafe impl Send for Views {}

impl Views {
    /// `end` keeps the role while a view lives.
    pub(crate) fn new(window: Option<Window>, start: &Start, end: Owner) -> Result<Self> {
        let capacity = start.capacity as usize;
        if capacity > CAPACITY_MAX {
            let text =
                format!("{capacity} bytes: JavaScript works with rings and topics of up to {CAPACITY_MAX} bytes");
            return Err(refuse(ErrorKind::Unsupported, text));
        }
        Ok(Self {
            window: window.map(|window| Apart::new(window, capacity)),
            data: start.data,
            capacity,
            end,
            viewed: AtomicBool::new(false),
        })
    }

    /// A buffer over `len` bytes from `offset` of the doubled data.
    pub(crate) fn view(&self, env: &Env, offset: u32, len: u32) -> Result<Buffer> {
        // Relaxed: only this thread uses it.
        self.viewed.store(true, Ordering::Relaxed);
        self.buffer(env, offset as usize, len as usize)
    }

    fn buffer(&self, env: &Env, offset: usize, len: usize) -> Result<Buffer> {
        self.check(offset, len)?;
        let start = self.start()?.wrapping_add(offset);
        // SAFETY: within the window, which is unmapped once no buffer over it is left, or by `close`, before which all of
        // them are detached; or within the data of an end without one, which is mapped as long as the end is open. That data may
        // be read-only, and JavaScript never writes to it.
        unsafe { over(env, start, len, (self.window.clone(), Arc::clone(&self.end))) }
    }

    /// Where the window has the data.
    fn start(&self) -> Result<*mut u8> {
        let Some(window) = &self.window else { return Ok(self.data.cast_mut()) };
        let start = window.with(|window| window.at(self.data));
        start.ok_or_else(|| refuse(ErrorKind::Detached, "its memory is unmapped"))
    }

    /// Unmaps the window. All buffers over it are detached.
    pub(crate) fn close(&self) {
        // Relaxed: as above.
        if let Some(window) = &self.window {
            window.close(self.viewed.load(Ordering::Relaxed));
        }
    }

    fn check(&self, offset: usize, len: usize) -> Result<()> {
        if offset + len <= 2 * self.capacity { Ok(()) } else { Err(refuse(ErrorKind::InvalidArgument, "out of range")) }
    }

    /// Puts private memory in the place of bytes whose buffer was transferred away, and a new window in the place of
    /// this one.
    ///
    /// # Safety
    /// The end is attached, and the bytes are unreleased frames or an open slot of it.
    pub(crate) unsafe fn cut(&mut self, env: &Env, next: Window, offset: u32, len: u32) -> Result<Buffer> {
        self.check(offset as usize, len as usize)?;
        let start = self.data.wrapping_add(offset as usize);
        if let Some(window) = &self.window {
            // SAFETY: the caller's promise.
            window.with(|window| unsafe { window.cut(start, len as usize) }).transpose().or_throw()?;
            // The window before belongs to the owner of the buffer now.
            self.window = Some(Apart::new(next, self.capacity));
        }
        self.whole(env)
    }

    /// The doubled data, for the hot path.
    fn whole(&self, env: &Env) -> Result<Buffer> {
        self.buffer(env, 0, 2 * self.capacity)
    }

    pub(crate) fn memory(&self, env: &Env, start: &Start, topic: Option<TopicMemory>) -> Result<Memory> {
        let block = if topic.is_some() { size_of::<TopicBlock>() } else { size_of::<RingBlock>() };
        // SAFETY: the block is mapped while the end is attached; `close` detaches this buffer first.
        let header = unsafe { over(env, start.block.cast_mut().cast(), block, Arc::clone(&self.end)) }?;
        Ok(Memory {
            header,
            data: self.whole(env)?,
            capacity: self.capacity as u32,
            align: start.align,
            position: BigInt::from(start.own),
            peer: BigInt::from(start.peer),
            peer_flags: start.peer_flags,
            is_final: start.endings_are_final,
            max_message_length: start.max_len as u32,
            next_last_tag: start.next_last_tag,
            address: (self.start()?.addr() % 4096) as u32,
            topic,
        })
    }
}
