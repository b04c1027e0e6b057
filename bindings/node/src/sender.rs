//! The native half of a sender: everything that is done once, or that waits.

use crate::buffer::Buffer;
use crate::end::{Memory, Positions, Shared, Start, Views, peer_within, policy, wait_limit, waited};
use crate::error::{OrThrow, thrown};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// A sender.
#[napi]
pub struct NativeSender {
    core: Arc<Shared<ramway::Sender>>,
    views: Views,
    start: Start,
    max_len: u32,
    next_last_tag: u32,
    name: Option<String>,
}

// SAFETY: the addresses in `start` are used on the JavaScript thread alone, while the end is attached.
unsafe impl Send for NativeSender {}

impl NativeSender {
    /// Takes a sender over.
    pub(crate) fn wrap(mut core: ramway::Sender, name: Option<String>) -> Result<Self> {
        let mut raw = core.raw();
        // SAFETY: the pointer is the sender's own state, borrowed right now.
        let hot = unsafe { &*raw.hot() };
        let start = Start {
            block: hot.block,
            data: hot.data,
            capacity: hot.capacity,
            align: hot.align,
            position: hot.tail,
            peer: hot.head,
            peer_flags: hot.peer_flags,
            is_final: hot.endings_are_final != 0,
        };
        let (max_len, next_last_tag) = (hot.max_len as u32, hot.next_last_tag);
        let window = raw.window().or_throw()?;
        let core = Shared::new(core, "sender");
        let views = Views::new(window, &start, core.clone())?;
        Ok(Self { core, views, start, max_len, next_last_tag, name })
    }
}

#[napi]
impl NativeSender {
    /// Asked for once, by the object that works on it.
    #[napi]
    pub fn memory(&self, env: Env) -> Result<Memory> {
        self.core.with(|_| Ok(()))?;
        crate::teardown::close_with(&env, &self.core)?;
        self.views.memory(&env, &self.start)
    }

    /// Which of the two last-tag records is written next.
    #[napi(getter)]
    pub fn next_last_tag(&self) -> u32 {
        self.next_last_tag
    }

    /// A buffer over the bytes of a slot.
    #[napi(ts_return_type = "ArrayBuffer")]
    pub fn lend(&self, env: Env, offset: u32, len: u32) -> Result<Buffer> {
        self.views.lend(&env, offset, len)
    }

    /// Takes a slot out of a buffer that was transferred away, before it is committed. Gives a new `data`.
    #[napi(ts_return_type = "ArrayBuffer")]
    pub fn cut(&mut self, env: Env, offset: u32, len: u32) -> Result<Buffer> {
        let next = self.core.with(|core| core.raw().window().or_throw())?;
        // SAFETY: attached, and not published yet.
        unsafe { self.views.cut(&env, next, offset, len) }
    }

    /// Whether a payload of `len` bytes fits; if not, the descriptor tells of it. Throws what keeps it from ever fitting.
    #[napi]
    pub fn ready(&self, at: Positions, len: u32) -> Result<bool> {
        self.core.with(|core| {
            let mut raw = core.raw();
            raw.follow(at.own(), at.peer());
            raw.ready(len as usize).or_throw()
        })
    }

    /// Blocks up to this long until a payload of `len` bytes fits; false: it does not.
    #[napi]
    pub fn wait(&self, at: Positions, len: u32, milliseconds: f64) -> Result<bool> {
        self.core.with(|core| {
            let mut raw = core.raw();
            raw.follow(at.own(), at.peer());
            waited(raw.wait(len as usize, wait_limit(milliseconds)))
        })
    }

    /// Wakes the receiver if it waits, and agrees with it anew on fences. Gives its flags.
    #[napi]
    pub fn wake(&self) -> Result<u32> {
        self.core.with(|core| {
            core.raw().after_publish();
            // SAFETY: the pointer is the sender's own state, borrowed right now.
            Ok(unsafe { (*core.raw().hot()).peer_flags })
        })
    }

    /// Marks the handle dead of what was found in the ring, and throws it.
    #[napi]
    pub fn corrupt(&self) -> Result<()> {
        self.core.with(|core| Err(thrown(&core.raw().corrupt())))
    }

    /// Throws what the handle is dead of.
    #[napi]
    pub fn check(&self) -> Result<()> {
        self.core.with(|core| core.raw().check().or_throw())
    }

    /// The readiness descriptor. It belongs to this object.
    #[napi]
    pub fn descriptor(&self) -> Result<i32> {
        self.core.with(|core| Ok(core.readiness().or_throw()?.as_raw_fd()))
    }

    /// Gives the role up; everything is published. `header` and `data` are detached first; views of the data are gone by now.
    /// `abandon`: without telling the receiver, as if the process had died.
    #[napi]
    pub fn close(
        &self,
        env: Env,
        #[napi(ts_arg_type = "ArrayBuffer")] header: Unknown<'_>,
        #[napi(ts_arg_type = "ArrayBuffer")] data: Unknown<'_>,
        at: Positions,
        abandon: bool,
    ) -> Result<()> {
        crate::buffer::detach(env, header)?;
        crate::buffer::detach(env, data)?;
        if let Some(mut core) = self.core.take() {
            core.raw().follow(at.own(), at.peer());
            if abandon {
                core.abandon();
            }
            // Else what it is dead of was thrown where it was met.
        }
        self.views.close();
        Ok(())
    }

    /// Whether waiting begins with looking: not if it sleeps at once, or there is one CPU.
    #[napi]
    pub fn polls(&self) -> Result<bool> {
        self.core.with(|core| Ok(core.raw().polls()))
    }

    /// How blocking calls wait from now on.
    #[napi]
    pub fn set_wait(&self, name: String) -> Result<()> {
        let policy = policy(&name)?;
        self.core.with(|core| {
            core.set_wait_policy(policy);
            Ok(())
        })
    }

    /// Bytes of the longest message.
    #[napi(getter)]
    pub fn max_message_length(&self) -> u32 {
        self.max_len
    }

    /// The tag of the last published message, also one of an earlier sender; none before the first.
    #[napi]
    pub fn last_tag(&self, at: Positions) -> Result<Option<BigInt>> {
        self.core.with(|core| {
            core.raw().follow(at.own(), at.peer());
            Ok(core.last_tag().map(BigInt::from))
        })
    }

    /// The ring's name; none on a bus or a pair.
    #[napi(getter)]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether a receiver is attached and its process lives.
    #[napi(getter)]
    pub fn peer_alive(&self) -> Result<bool> {
        self.core.with(|core| Ok(core.is_peer_alive()))
    }

    /// Waits up to this long for a receiver that lives, and gives its epoch; null: there is none.
    #[napi]
    pub fn wait_for_peer(&self, milliseconds: f64) -> Result<Option<u32>> {
        self.core.with(|core| peer_within(core.raw().wait_for_peer(wait_limit(milliseconds))))
    }

    /// How often a receiver has attached.
    #[napi(getter)]
    pub fn peer_epoch(&self) -> Result<u32> {
        self.core.with(|core| Ok(core.peer_epoch()))
    }

    /// How often a sender has attached, this one included.
    #[napi(getter)]
    pub fn epoch(&self) -> Result<u32> {
        self.core.with(|core| Ok(core.epoch()))
    }
}
