//! Waiting for the other side to attach, and ending a wait from another thread.

use super::{Receiver, Sender, fail};
use crate::endpoint::end;
use crate::layout::{ROLE_CLOSED, RoleLine};
use crate::segment::{Attachment, Header, Role};
use crate::sync::{AtomicU32, Ordering, Step, fence, keep};
use crate::wait::{self, WaitLimit, Waiting};
use crate::{ErrorKind, Result};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Ends the wait of a [`Sender`] or [`Receiver`] that another thread uses. Made by [`Receiver::waker`] and
/// [`Sender::waker`]; clones are the same waker. It may outlive its handle, and then does nothing.
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
    woken: Arc<AtomicU32>,
    /// The role's own words, in `_header`.
    mine: NonNull<RoleLine>,
    _header: Arc<Header>,
    #[cfg(not(loom))]
    generation: u32,
}

// SAFETY: `mine` leads into a mapping that `_header` keeps and that has no thread affinity; what is there is atomic.
unsafe impl Send for Waker {}
// SAFETY: as above.
unsafe impl Sync for Waker {}

impl Waker {
    fn new(waiting: &Waiting, attachment: &Attachment, mine: &RoleLine) -> Self {
        Self {
            woken: waiting.woken(),
            mine: mine.into(),
            _header: attachment.header.clone(),
            #[cfg(not(loom))]
            generation: crate::sys::fork::generation(),
        }
    }

    /// The call that waits now, or, if none does, the next one that would, returns `Interrupted`: unless what it waits
    /// for is there, or has ended. Several calls of this before that end one wait. Never blocks. In a fork's child it
    /// does nothing.
    pub fn wake(&self) {
        #[cfg(not(loom))]
        if self.generation != crate::sys::fork::generation() {
            return;
        }
        // Release: whoever is told sees what was done before.
        self.woken.store(1, Ordering::Release);
        // SeqCst: the request goes before the load of the wait word; pairs with the order in `Waiting::arm`, after
        // which the sleeper loads the request.
        if keep(Step::WakerFence) {
            fence(Ordering::SeqCst);
        }
        // SAFETY: `_header` keeps the page mapped.
        wait::wake_if_waiting(unsafe { self.mine.as_ref() });
    }
}

impl Sender {
    /// Waits until a receiver is attached that has not closed and whose process lives, as long as it takes; gives its
    /// [epoch](Self::peer_epoch). At once if there is one already. One that attaches during the call ends it, also if it is
    /// gone again.
    ///
    /// # Errors
    /// Where an end is final (a bus, a pair): `Closed` or `PeerDead` at once if the receiver is gone. `Closed` if the
    /// ring's name was removed, so that nobody can come. `Interrupted` by a [`Waker`], or by a signal if
    /// [so asked](Self::set_interruptible). `Corrupt`, `Detached`.
    pub fn wait_for_peer(&mut self) -> Result<u32> {
        self.attached_peer(WaitLimit::Forever)
    }

    /// [`wait_for_peer`](Self::wait_for_peer) for at most `timeout`, then `TimedOut`.
    pub fn wait_for_peer_timeout(&mut self, timeout: Duration) -> Result<u32> {
        self.attached_peer(WaitLimit::For(timeout))
    }

    /// What ends this handle's waits from another thread.
    pub fn waker(&self) -> Waker {
        let inner = &self.inner;
        Waker::new(&inner.waiting, &inner.attachment, inner.hot.mine())
    }

    pub(super) fn attached_peer(&mut self, wait_limit: WaitLimit) -> Result<u32> {
        let inner = self.inner();
        let (mine, peer) = (inner.hot.mine(), inner.hot.peer());
        let outcome = match inner.hot.check() {
            Ok(()) => {
                attached(mine, peer, &mut inner.waiting, &inner.attachment, &inner.gone, Role::Producer, wait_limit)
            }
            Err(kind) => Err(fail(kind)),
        };
        outcome.map_err(|e| inner.with_name(e))
    }
}

impl Receiver {
    /// Waits until a sender is attached that has not closed and whose process lives, as long as it takes; gives its
    /// [epoch](Self::peer_epoch). At once if there is one already. One that attaches during the call ends it, also if it is
    /// gone again: its messages may be there. Messages stay where they are.
    ///
    /// After `PeerDead` or `Closed` on a named ring this waits for the successor:
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// # let name = format!("/dev/shm/ramway-doc-peer-{}", std::process::id());
    /// # let mut rx = ramway::Ring::create(&name).receiver()?;
    /// # let next = ramway::Ring::open(&name).sender()?;
    /// let epoch = rx.wait_for_peer()?;
    /// assert_eq!(epoch, rx.peer_epoch());
    /// # drop(next);
    /// # assert!(rx.recv().is_err()); // a close that nobody saw would keep the name
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`Sender::wait_for_peer`].
    pub fn wait_for_peer(&mut self) -> Result<u32> {
        self.attached_peer(WaitLimit::Forever)
    }

    /// [`wait_for_peer`](Self::wait_for_peer) for at most `timeout`, then `TimedOut`.
    pub fn wait_for_peer_timeout(&mut self, timeout: Duration) -> Result<u32> {
        self.attached_peer(WaitLimit::For(timeout))
    }

    /// What ends this handle's waits from another thread.
    pub fn waker(&self) -> Waker {
        let inner = &self.inner;
        Waker::new(&inner.waiting, &inner.attachment, inner.hot.mine())
    }

    pub(super) fn attached_peer(&mut self, wait_limit: WaitLimit) -> Result<u32> {
        let inner = self.inner();
        let (mine, peer) = (inner.hot.mine(), inner.hot.peer());
        let outcome = match inner.hot.check() {
            Ok(()) => {
                attached(mine, peer, &mut inner.waiting, &inner.attachment, &inner.gone, Role::Consumer, wait_limit)
            }
            Err(kind) => Err(fail(kind)),
        };
        outcome.map_err(|e| inner.with_name(e))
    }
}

/// The epoch of the living peer of `me`, or of one that attached during the call: it may have sent and gone again. With
/// `WaitLimit::None` it arms the readiness descriptor, where there is one, and is `Empty` if nobody is there.
fn attached(
    mine: &RoleLine,
    peer: &RoleLine,
    waiting: &mut Waiting,
    attachment: &Attachment,
    gone: &Cell<u32>,
    me: Role,
    wait_limit: WaitLimit,
) -> Result<u32> {
    let link = &attachment.link;
    // Acquire, here and below: pairs with the peer's attach and close.
    let epoch = || peer.epoch.load(Ordering::Acquire);
    let closed = || peer.flags.load(Ordering::Acquire) & ROLE_CLOSED != 0;
    let before = epoch();
    // A peer that closed or died stays so under this epoch: its successor holds the lock before it raises the epoch, and
    // the lock alone would pass for the life of the predecessor.
    let alive = before != 0 && before != gone.get() && !closed() && link.peer_alive(me);
    if !alive {
        gone.set(before);
    }
    let ready = || Ok(alive || epoch() != before);
    let ended = |_: bool| {
        if !link.endings_are_final() {
            return if link.name_vanished() { Err(end::name_vanished()) } else { Ok(()) };
        }
        end::check(peer, link, me, 0, gone, true)
    };
    let outcome = waiting.without_polling(|waiting| match wait_limit.deadline() {
        Some(deadline) => waiting.until(mine, peer, deadline, ready, ended),
        None => match waiting.rearm(mine, peer, ready, ended, true)? {
            true => Ok(()),
            false => Err(ErrorKind::Empty.into()),
        },
    });
    if wait_limit != WaitLimit::None
        && outcome.is_err()
        && let Some(readiness) = &waiting.readiness
    {
        // It was armed for the peer; what it is for (messages, room) was not looked at.
        readiness.signal();
    }
    outcome.map(|()| epoch())
}
