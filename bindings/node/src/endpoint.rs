//! The native half of a sender or a receiver: everything that is done once, or that waits.

use crate::buffer::{Buffer, detach};
use crate::error::{OrThrow, thrown};
use crate::handle::Shared;
use crate::options::policy;
use crate::teardown::close_with;
use crate::topic::Notes;
use crate::views::{Memory, Views};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use ramway::ErrorKind;
use ramway::ring::raw::{RawEndpoint, Start, WaitLimit};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

/// A core end, of either role.
pub(crate) enum Core {
    Sender(ramway::Sender),
    /// One with writable views.
    Receiver(ramway::Receiver),
    Publisher(ramway::Publisher),
    Subscriber(ramway::Subscriber),
}

impl Core {
    /// What both roles have.
    pub(crate) fn end(&mut self) -> &mut dyn RawEndpoint {
        match self {
            Self::Sender(end) => end,
            Self::Receiver(end) => end,
            Self::Publisher(end) => end,
            Self::Subscriber(end) => end,
        }
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

/// A sender or a receiver.
#[napi]
pub struct NativeEndpoint {
    core: Arc<Shared<Core>>,
    views: Views,
    start: Start,
    name: Option<String>,
    /// Of a topic's: what both halves have besides the positions.
    pub(crate) notes: Option<Arc<Notes>>,
}

// SAFETY: the addresses in `start` are used on the JavaScript thread alone, while the end is attached.
unsafe impl Send for NativeEndpoint {}

impl NativeEndpoint {
    pub(crate) fn wrap(mut core: Core, name: Option<String>) -> Result<Self> {
        let start = core.end().start();
        let what = match core {
            Core::Sender(_) => "sender",
            Core::Receiver(_) => "receiver",
            Core::Publisher(_) => "publisher",
            Core::Subscriber(_) => "subscriber",
        };
        // A subscriber's data is mapped for reading alone, and JavaScript has no read-only views: it gives out copies.
        let window = if matches!(core, Core::Subscriber(_)) { None } else { Some(core.end().window().or_throw()?) };
        let notes = Notes::of(&core);
        let core = Shared::new(core, what);
        let views = Views::new(window, &start, core.clone())?;
        Ok(Self { core, views, start, name, notes })
    }

    /// Runs where the JavaScript half is.
    pub(crate) fn at<R>(&self, at: &Positions, run: impl FnOnce(&mut Core) -> Result<R>) -> Result<R> {
        self.noting(|core| {
            core.end().follow(at.own(), at.peer());
            run(core)
        })
    }

    /// Runs, and takes over what the JavaScript half has noted before, and notes for it what has changed.
    fn noting<R>(&self, run: impl FnOnce(&mut Core) -> Result<R>) -> Result<R> {
        self.core.with(|core| {
            let Some(notes) = &self.notes else { return run(core) };
            notes.follow(core);
            let result = run(core);
            notes.write(core);
            result
        })
    }
}

#[napi]
impl NativeEndpoint {
    /// Asked for once, by the object that works on it.
    #[napi]
    pub fn memory(&self, env: Env) -> Result<Memory> {
        self.core.with(|_| Ok(()))?;
        close_with(&env, &self.core)?;
        let topic =
            self.core.with(|core| self.notes.as_ref().map(|notes| notes.memory(&env, core, &self.core)).transpose())?;
        self.views.memory(&env, &self.start, topic)
    }

    /// A buffer over the bytes of a slot, or over received bytes.
    #[napi(ts_return_type = "ArrayBuffer")]
    pub fn view(&self, env: Env, offset: u32, len: u32) -> Result<Buffer> {
        self.views.view(&env, offset, len)
    }

    /// Takes these bytes out of a buffer that was transferred away, before they are committed or released. Gives a new
    /// `data`.
    #[napi(ts_return_type = "ArrayBuffer")]
    pub fn cut(&mut self, env: Env, offset: u32, len: u32) -> Result<Buffer> {
        let next = self.core.with(|core| core.end().window().or_throw())?;
        // SAFETY: attached, and neither published nor released yet.
        unsafe { self.views.cut(&env, next, offset, len) }
    }

    /// Whether a payload of `len` bytes fits, or a message is there; if not, the descriptor tells of it. Throws what keeps
    /// that from ever coming.
    #[napi]
    pub fn ready(&self, at: Positions, len: u32) -> Result<bool> {
        self.at(&at, |core| core.end().ready(len as usize).or_throw())
    }

    /// Blocks until it is so for up to this long; false: it is not.
    #[napi]
    pub fn wait(&self, at: Positions, len: u32, milliseconds: f64) -> Result<bool> {
        let limit = wait_limit(milliseconds);
        self.at(&at, |core| Ok(unless_late(core.end().wait(len as usize, limit))?.is_some()))
    }

    /// Wakes the other side if it waits, and agrees with it anew on fences. Gives its flags.
    #[napi]
    pub fn wake(&self) -> Result<u32> {
        self.noting(|core| Ok(core.end().wake()))
    }

    /// Marks the handle dead of what was found in the ring, and throws it.
    #[napi]
    pub fn corrupt(&self) -> Result<()> {
        self.core.with(|core| Err(thrown(&core.end().corrupt())))
    }

    /// Throws what the handle is dead of.
    #[napi]
    pub fn check(&self) -> Result<()> {
        self.core.with(|core| core.end().check().or_throw())
    }

    /// The readiness descriptor. It belongs to this object.
    #[napi]
    pub fn descriptor(&self) -> Result<i32> {
        self.core.with(|core| Ok(core.end().readiness().or_throw()?.as_raw_fd()))
    }

    /// Gives the role up; everything is published. The `buffers` of [`memory`](Self::memory) over mapped memory are detached
    /// first; views of the data are gone by now. `otherwise`, of a sender: without telling the receiver, as if the process had
    /// died; of a subscriber: for good, also if it is durable.
    #[napi]
    pub fn close(
        &self,
        env: Env,
        #[napi(ts_arg_type = "ArrayBuffer[]")] buffers: Vec<Unknown<'_>>,
        at: Positions,
        otherwise: bool,
    ) -> Result<()> {
        for buffer in buffers {
            detach(env, buffer)?;
        }
        // So that the core that is dropped is where this half is.
        let _ = self.at(&at, |_| Ok(()));
        if let Some(core) = self.core.take() {
            // What it is dead of was thrown where it was met: dropping says no more.
            match core {
                Core::Sender(end) if otherwise => end.abandon(),
                Core::Publisher(end) if otherwise => end.abandon(),
                Core::Subscriber(mut end) if otherwise => end.forget_durable(),
                core => drop(core),
            }
        }
        self.views.close();
        Ok(())
    }

    /// Whether waiting begins with polling: not if it sleeps at once, or there is one CPU.
    #[napi]
    pub fn polls(&self) -> Result<bool> {
        self.core.with(|core| Ok(core.end().polls()))
    }

    /// How blocking calls wait from now on.
    #[napi]
    pub fn set_wait(&self, name: String) -> Result<()> {
        let policy = policy(Some(&name))?;
        self.core.with(|core| {
            core.end().set_wait_policy(policy);
            Ok(())
        })
    }

    /// The tag of the last published message, also one of an earlier sender; none before the first, and of a receiver.
    #[napi]
    pub fn last_tag(&self, at: Positions) -> Result<Option<BigInt>> {
        self.at(&at, |core| {
            Ok(match core {
                Core::Sender(end) => end.last_tag().map(BigInt::from),
                Core::Publisher(end) => end.last_tag().map(BigInt::from),
                Core::Receiver(_) | Core::Subscriber(_) => None,
            })
        })
    }

    /// The ring's name; none on a bus or a pair.
    #[napi(getter)]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether the other side is attached and its process lives.
    #[napi(getter)]
    pub fn peer_alive(&self) -> Result<bool> {
        self.core.with(|core| Ok(core.end().is_peer_alive()))
    }

    /// Waits up to this long for a living peer, and gives its epoch; null: there is none.
    #[napi]
    pub fn wait_for_peer(&self, milliseconds: f64) -> Result<Option<u32>> {
        let limit = wait_limit(milliseconds);
        self.core.with(|core| unless_late(core.end().await_peer(limit)))
    }

    /// How often the other side has attached.
    #[napi(getter)]
    pub fn peer_epoch(&self) -> Result<u32> {
        self.core.with(|core| Ok(core.end().peer_epoch()))
    }

    /// How often this side has attached, this handle included.
    #[napi(getter)]
    pub fn epoch(&self) -> Result<u32> {
        self.core.with(|core| Ok(core.end().epoch()))
    }
}

/// A wait of this many milliseconds.
pub(crate) fn wait_limit(milliseconds: f64) -> WaitLimit {
    WaitLimit::For(Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or_default())
}

/// What a wait gave, none if the time was up.
pub(crate) fn unless_late<T>(outcome: ramway::Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(e) if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::Empty | ErrorKind::Interrupted) => Ok(None),
        Err(e) => Err(thrown(&e)),
    }
}
