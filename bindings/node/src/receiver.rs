//! The native half of a receiver: everything that is done once, or that waits.

use crate::buffer::Buffer;
use crate::end::{Memory, Positions, Shared, Start, Views, peer_within, policy, wait_limit, waited};
use crate::error::{OrThrow, thrown};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// A receiver.
#[napi]
pub struct NativeReceiver {
    core: Arc<Shared<ramway::Receiver>>,
    views: Views,
    start: Start,
    name: Option<String>,
}

// SAFETY: the addresses in `start` are used on the JavaScript thread alone, while the end is attached.
unsafe impl Send for NativeReceiver {}

impl NativeReceiver {
    /// Takes a receiver with writable views over.
    pub(crate) fn wrap(mut core: ramway::Receiver, name: Option<String>) -> Result<Self> {
        let mut raw = core.raw();
        // SAFETY: the pointer is the receiver's own state, borrowed right now.
        let hot = unsafe { &*raw.hot() };
        let start = Start {
            block: hot.block,
            data: hot.data,
            capacity: hot.capacity,
            align: hot.align,
            position: hot.released,
            peer: hot.tail,
            peer_flags: hot.peer_flags,
            is_final: hot.endings_are_final != 0,
        };
        let window = raw.window().or_throw()?;
        let core = Shared::new(core, "receiver");
        let views = Views::new(window, &start, core.clone())?;
        Ok(Self { core, views, start, name })
    }
}

#[napi]
impl NativeReceiver {
    /// Asked for once, by the object that works on it.
    #[napi]
    pub fn memory(&self, env: Env) -> Result<Memory> {
        self.core.with(|_| Ok(()))?;
        crate::teardown::close_with(&env, &self.core)?;
        self.views.memory(&env, &self.start)
    }

    /// A buffer over received bytes.
    #[napi(ts_return_type = "ArrayBuffer")]
    pub fn lend(&self, env: Env, offset: u32, len: u32) -> Result<Buffer> {
        self.views.lend(&env, offset, len)
    }

    /// Takes lent bytes out of a buffer that was transferred away, before they are released. Gives a new `data`.
    #[napi(ts_return_type = "ArrayBuffer")]
    pub fn cut(&mut self, env: Env, offset: u32, len: u32) -> Result<Buffer> {
        let next = self.core.with(|core| core.raw().window().or_throw())?;
        // SAFETY: attached, and not released yet.
        unsafe { self.views.cut(&env, next, offset, len) }
    }

    /// Whether a message is there; if not, the descriptor tells of it. Throws how the stream ended.
    #[napi]
    pub fn ready(&self, at: Positions) -> Result<bool> {
        self.core.with(|core| {
            let mut raw = core.raw();
            raw.follow(at.own(), at.peer());
            raw.ready().or_throw()
        })
    }

    /// Blocks up to this long for a message; false: none came.
    #[napi]
    pub fn wait(&self, at: Positions, milliseconds: f64) -> Result<bool> {
        self.core.with(|core| {
            let mut raw = core.raw();
            raw.follow(at.own(), at.peer());
            waited(raw.wait(wait_limit(milliseconds)))
        })
    }

    /// Wakes the sender if it waits, and agrees with it anew on fences. Gives its flags.
    #[napi]
    pub fn wake(&self) -> Result<u32> {
        self.core.with(|core| {
            core.raw().after_release();
            // SAFETY: the pointer is the receiver's own state, borrowed right now.
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

    /// Gives the role up. `header` and `data` are detached first; views of the data are gone by now.
    #[napi]
    pub fn close(
        &self,
        env: Env,
        #[napi(ts_arg_type = "ArrayBuffer")] header: Unknown<'_>,
        #[napi(ts_arg_type = "ArrayBuffer")] data: Unknown<'_>,
        at: Positions,
    ) -> Result<()> {
        crate::buffer::detach(env, header)?;
        crate::buffer::detach(env, data)?;
        if let Some(mut core) = self.core.take() {
            core.raw().follow(at.own(), at.peer());
            // What it is dead of was thrown where it was met.
            drop(core);
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

    /// The ring's name; none on a bus or a pair.
    #[napi(getter)]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether a sender is attached and its process lives.
    #[napi(getter)]
    pub fn peer_alive(&self) -> Result<bool> {
        self.core.with(|core| Ok(core.is_peer_alive()))
    }

    /// Waits up to this long for a sender that lives, and gives its epoch; null: there is none.
    #[napi]
    pub fn wait_for_peer(&self, milliseconds: f64) -> Result<Option<u32>> {
        self.core.with(|core| peer_within(core.raw().wait_for_peer(wait_limit(milliseconds))))
    }

    /// How often a sender has attached.
    #[napi(getter)]
    pub fn peer_epoch(&self) -> Result<u32> {
        self.core.with(|core| Ok(core.peer_epoch()))
    }

    /// How often a receiver has attached, this one included.
    #[napi(getter)]
    pub fn epoch(&self) -> Result<u32> {
        self.core.with(|core| Ok(core.epoch()))
    }
}
