//! Ending a wait from another thread.

use super::word::{wake_if_waiting, wake_subscribers};
use crate::segment::Header;
use crate::sync::{AtomicU32, AtomicU64, Ordering, Step, fence, keep};
use crate::sys::fork;
use std::ptr::NonNull;
use std::sync::Arc;

/// Ends the wait of a [`Sender`](crate::Sender) or [`Receiver`](crate::Receiver) that another thread uses. Made by
/// [`Receiver::waker`](crate::Receiver::waker) and [`Sender::waker`](crate::Sender::waker); clones are the same waker. It
/// may outlive its handle, and then does nothing.
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// let (tx, mut rx) = ramway::Ring::pair(4096)?;
/// let waker = rx.waker();
/// let thread = std::thread::spawn(move || rx.recv().map(|_| ()).unwrap_err().kind());
/// waker.wake();
/// assert_eq!(thread.join().unwrap(), ramway::ErrorKind::Interrupted);
/// # drop(tx);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Waker {
    interrupt: Arc<AtomicU32>,
    /// In `_header`.
    target: Target,
    _header: Arc<Header>,
    generation: u32,
}

/// The word that a handle sleeps on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// Its own: 1 while it sleeps.
    Own(NonNull<AtomicU32>),
    /// The one that all subscribers of a topic share.
    Shared(NonNull<AtomicU64>),
    /// None: it sleeps for short intervals only.
    None,
}

// SAFETY: `target` leads into a mapping that `_header` keeps and that has no thread affinity; what is there is atomic.
unsafe impl Send for Waker {}
// SAFETY: as above.
unsafe impl Sync for Waker {}

impl Waker {
    pub(crate) fn new(interrupt: Arc<AtomicU32>, target: Target, header: Arc<Header>) -> Self {
        Self { interrupt, target, _header: header, generation: fork::generation() }
    }

    /// The call that waits now, or, if none does, the next one that would, returns `Interrupted`: unless what it waits
    /// for is there, or has ended. Several calls of this before that end one wait. Never blocks. In a fork's child it
    /// does nothing.
    pub fn wake(&self) {
        if self.generation != fork::generation() {
            return;
        }
        // Release: the sleeper that takes the request sees what was done before it.
        self.interrupt.store(1, Ordering::Release);
        // SeqCst: the request goes before the load of the wait word; pairs with the order in the word's `arm`, after
        // which the sleeper loads the request.
        if keep(Step::WakerFence) {
            fence(Ordering::SeqCst);
        }
        match self.target {
            // SAFETY: `_header` keeps the page mapped.
            Target::Own(wait) => wake_if_waiting(unsafe { wait.as_ref() }),
            // Changed, so that a subscriber that is about to sleep does not. The others check and sleep again.
            // SAFETY: as above.
            Target::Shared(word) => wake_subscribers(unsafe { word.as_ref() }),
            Target::None => {}
        }
    }
}
