//! What other threads tell a server: how their calls ended, and that it is to stop. One queue, and what wakes the server.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::ledger::Reply;
use super::news::News;
use super::streams::Elements;
use crate::sys::fork;
use crate::{Result, SelectWaker};

/// What became of a call whose handler runs elsewhere.
pub(super) enum Happened {
    /// The handler has given its one reply, or failed.
    Reply(Reply),
    /// The handler's stream is complete.
    Complete,
    /// The handler's next element.
    Element(Reply),
    /// The next element of a stream of the pool; its iterator comes back until another one is wanted.
    Pulled(Box<dyn Elements>, Reply),
}

/// Something that happened to a call.
pub(super) struct Event {
    pub(super) client: u64,
    pub(super) call: u64,
    pub(super) happened: Happened,
}

/// No shutdown is asked for.
const NEVER: u64 = u64::MAX;

pub(super) struct Hub {
    events: Mutex<VecDeque<Event>>,
    /// Whether there are events or something is asked for, and whether the server sleeps.
    news: News,
    /// Milliseconds that a shutdown may take.
    shutdown: AtomicU64,
    /// A wait is to end.
    interrupt: AtomicBool,
    waker: SelectWaker,
    /// Of a server in an event loop: an eventfd that is readable when there is news.
    descriptor: OnceLock<fork::Entry>,
    generation: u32,
}

impl Hub {
    pub(super) fn new(waker: SelectWaker) -> Self {
        fork::install();
        Self {
            events: Mutex::new(VecDeque::new()),
            news: News::default(),
            shutdown: AtomicU64::new(NEVER),
            interrupt: AtomicBool::new(false),
            waker,
            descriptor: OnceLock::new(),
            generation: fork::generation(),
        }
    }

    /// Whether this is a fork's child, in which the server does not exist; a lock may be held by a thread that does not either.
    pub(super) fn is_detached(&self) -> bool {
        self.generation != fork::generation()
    }

    pub(super) fn push(&self, event: Event) {
        if self.is_detached() {
            // What it holds may wait for locks too.
            std::mem::forget(event);
            return;
        }
        self.lock().push_back(event);
        self.tell();
    }

    /// Has a server shut down within this time. As `interrupt`, for signal handlers too: it takes no lock.
    pub(super) fn shut_down(&self, limit: Duration) {
        let millis = limit.as_millis().min(u128::from(NEVER - 1)) as u64;
        // Release here and below: `tell` says that it is there.
        self.shutdown.store(millis, Ordering::Release);
        self.tell();
    }

    /// Has the wait that runs, or the next one, end.
    pub(super) fn interrupt(&self) {
        self.interrupt.store(true, Ordering::Release);
        self.tell();
    }

    fn tell(&self) {
        if self.news.tell() {
            self.waker.wake();
            self.signal();
        }
    }

    /// Makes the descriptor readable, if there is one.
    pub(super) fn signal(&self) {
        if let Some(entry) = self.descriptor.get()
            && !entry.is_detached()
        {
            let _ = rustix::io::write(entry.fd(0), &1u64.to_ne_bytes());
        }
    }

    pub(super) fn news(&self) -> &News {
        &self.news
    }

    /// The events so far.
    pub(super) fn take(&self, into: &mut VecDeque<Event>) {
        self.news.take(|| std::mem::swap(&mut *self.lock(), into));
    }

    pub(super) fn take_shutdown(&self) -> Option<Duration> {
        match self.shutdown.swap(NEVER, Ordering::AcqRel) {
            NEVER => None,
            millis => Some(Duration::from_millis(millis)),
        }
    }

    pub(super) fn take_interrupt(&self) -> bool {
        // A look first: asked for in each round, and a swap is a fence.
        self.interrupt.load(Ordering::Relaxed) && self.interrupt.swap(false, Ordering::AcqRel)
    }

    /// The descriptor that is readable when there is news while the server may sleep.
    pub(super) fn descriptor(&self) -> Result<&fork::Entry> {
        if let Some(entry) = self.descriptor.get() {
            return Ok(entry);
        }
        let entry = fork::Entry::new(vec![eventfd()?]);
        Ok(self.descriptor.get_or_init(|| entry))
    }

    /// Makes the descriptor unreadable.
    pub(super) fn consume(&self) {
        if let Some(entry) = self.descriptor.get() {
            let _ = rustix::io::read(entry.fd(0), &mut [0u8; 8]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Event>> {
        // A push or a swap is whole or did not happen.
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(target_os = "linux")]
fn eventfd() -> Result<OwnedFd> {
    use rustix::event::{EventfdFlags, eventfd};
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|e| crate::Error::os(e.raw_os_error(), "an eventfd for an RPC server"))
}

#[cfg(not(target_os = "linux"))]
fn eventfd() -> Result<OwnedFd> {
    Err(crate::Error::new(crate::ErrorKind::Unsupported, "an RPC server's descriptor needs Linux"))
}
