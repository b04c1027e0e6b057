//! The side that listens: many handshakes at once, none of which can hold up another.

mod backlog;
pub(super) mod permit;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Bus;
use super::builder::ListenerBuilder;
use super::handshake::{self, Incoming};
use super::memory::{self, Halves, Plan};
use super::place::Place;
use crate::facts::HANDSHAKES_MAX;
use crate::ring::options::EndOptions;
use crate::segment::NamedLink;
use crate::sys::fs::FileId;
use crate::sys::{fork, socket};
use crate::{Error, ErrorKind, Result};
use backlog::Shortage;
use permit::{Permit, Permits};

/// What the listening socket is reported as; connections count up from 1.
const LISTENING: u64 = 0;
/// The longest sleep of an accept: another thread may have left it handshakes whose deadlines it does not know.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Accepts connectors, each with a [`Bus`] of its own memory. May be shared by threads.
///
/// A connector that is silent, breaks the handshake or is another user's is refused and does not disturb the others:
/// up to 64 handshakes run side by side, inside the calls of `accept`. When one more connector comes, the one that has
/// been silent the longest is refused. Dropping the listener removes the socket; buses live on.
///
/// Its descriptor ([`AsFd`]) is readable when [`try_accept`](Self::try_accept) may make progress, for event loops.
///
/// ```no_run
/// # fn main() -> ramway::Result<()> {
/// let listener = ramway::Listener::bind("echo")?;
/// loop {
///     let (Some(mut tx), Some(mut rx)) = listener.accept()?.split() else { continue };
///     std::thread::spawn(move || {
///         while let Ok(message) = rx.recv() {
///             if tx.send(message.type_id(), &message).is_err() {
///                 break;
///             }
///         }
///     });
/// }
/// # }
/// ```
pub struct Listener {
    handshakes: Mutex<Handshakes>,
    settings: Settings,
    path: PathBuf,
    place: Place,
    /// The socket's name when it was made.
    own: FileId,
    set: socket::Set,
    /// Descriptor 0 is the listening socket.
    listening: fork::Entry,
    /// Last: its lock says that the name is ours to remove.
    _link: NamedLink,
}

/// What a listener was told when it was built.
pub(super) struct Settings {
    /// How many connectors may be welcomed at a time.
    pub(super) peers: usize,
    /// A bus counts as one of them as long as it lives, and a connector beyond is refused instead of waiting.
    pub(super) counts_buses: bool,
    pub(super) plan: Plan,
    pub(super) allowed: Vec<u32>,
    pub(super) handshake_timeout: Duration,
    pub(super) end: EndOptions,
}

/// The handshakes that are under way.
struct Handshakes {
    /// By token; `None`: one of the threads has it in hand.
    by_token: HashMap<u64, Option<Pending>>,
    last_token: u64,
    /// For those that may be welcomed.
    permits: Permits,
    /// The listening socket is not polled, because there are enough handshakes.
    paused: bool,
    refused: u64,
    last_refusal: Option<String>,
    shortage: Shortage,
}

struct Pending {
    socket: fork::Entry,
    peer: socket::Credentials,
    stage: Stage,
}

/// How far a handshake is.
enum Stage {
    /// HELLO is due.
    Greeting(Due),
    /// HELLO is here, but no permit is left: another connector has to fail first. It has no deadline.
    Parked,
    /// ACK is due.
    Welcomed { due: Due, halves: Halves, permit: Permit },
}

/// A message that has to come in time.
struct Due {
    message: Incoming,
    /// `None` = never.
    deadline: Option<Instant>,
}

/// What became of a handshake.
enum Progress {
    Waits(Pending),
    Done(Bus),
}

impl Listener {
    /// Listens at a name or path with the default options.
    ///
    /// # Errors
    /// Those of [`ListenerBuilder::bind`].
    pub fn bind(name: impl AsRef<OsStr>) -> Result<Self> {
        Self::builder(name).bind()
    }

    /// `listening` holds the socket at `place`, and `link` the lock that makes the place ours.
    pub(super) fn new(
        settings: Settings,
        place: Place,
        own: FileId,
        listening: fork::Entry,
        link: NamedLink,
    ) -> Result<Self> {
        let waiting = || {
            let set = socket::Set::new()?;
            set.add(listening.fd(0), LISTENING, true)?;
            Ok((set, Mutex::new(Handshakes::new(Shortage::new(place.dir())?, settings.peers))))
        };
        let (set, handshakes) = waiting().inspect_err(|_: &Error| place.remove_own(own))?;
        let path = place.socket_path();
        Ok(Self { handshakes, settings, path, place, own, set, listening, _link: link })
    }

    /// Options for listening.
    pub fn builder(name: impl AsRef<OsStr>) -> ListenerBuilder {
        ListenerBuilder::new(name.as_ref())
    }

    /// The next bus, waiting for it as long as it takes.
    ///
    /// # Errors
    /// `NoSpace` if there is no memory for a bus, `Os` if there are no descriptors left: the connector was told, and the
    /// listener goes on at the next call, which waits for up to 100 ms first. `Detached` in a fork's child. What connectors do wrong is no error here: see
    /// [`last_refusal`](Self::last_refusal).
    pub fn accept(&self) -> Result<Bus> {
        self.accept_until(None)
    }

    /// [`accept`](Self::accept) that waits for at most `timeout`, then gives `TimedOut`. Handshakes that have begun go
    /// on at the next call.
    pub fn accept_timeout(&self, timeout: Duration) -> Result<Bus> {
        self.accept_until(Instant::now().checked_add(timeout))
    }

    /// [`accept`](Self::accept) that never waits: `Empty` if no connector has come through yet. Handshakes that have begun
    /// go on at the next call, so a connector takes several calls.
    pub fn try_accept(&self) -> Result<Bus> {
        self.accept_timeout(Duration::ZERO).map_err(|e| match e.kind() {
            ErrorKind::TimedOut => ErrorKind::Empty.into(),
            _ => e,
        })
    }

    /// The socket's path, which connectors can be given in place of the name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many connectors have been refused or have given up so far.
    pub fn refused(&self) -> u64 {
        if self.listening.is_detached() { 0 } else { self.lock().refused }
    }

    /// Why the last one was refused, for logs.
    pub fn last_refusal(&self) -> Option<String> {
        if self.listening.is_detached() { None } else { self.lock().last_refusal.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Handshakes> {
        // No step leaves the state half changed, so a thread that panicked elsewhere has left it whole.
        self.handshakes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn accept_until(&self, deadline: Option<Instant>) -> Result<Bus> {
        loop {
            if self.listening.is_detached() {
                return Err(Error::new(ErrorKind::Detached, "this listener belongs to the parent process"));
            }
            if let Some(bus) = self.overdue()? {
                return Ok(bus);
            }
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            match self.set.wait(self.sleep().min(left.unwrap_or(SLEEP_MAX)))? {
                Some(LISTENING) => {
                    // A call that never waits does not pause: its caller does the waiting.
                    let pause = self.lock().shortage.pause().filter(|_| !left.is_some_and(|left| left.is_zero()));
                    if let Some(pause) = pause {
                        std::thread::sleep(left.map_or(pause, |left| left.min(pause)));
                        if left.is_some_and(|left| left <= pause) {
                            return Err(ErrorKind::TimedOut.into());
                        }
                    } else if let Some(bus) = self.take_connections()? {
                        return Ok(bus);
                    }
                }
                Some(token) => {
                    if let Some(bus) = self.advance(token, false)? {
                        return Ok(bus);
                    }
                }
                None if left.is_some_and(|left| left.is_zero()) => return Err(ErrorKind::TimedOut.into()),
                None => {}
            }
        }
    }

    /// Until when nothing can be overdue.
    fn sleep(&self) -> Duration {
        self.due_in().map_or(SLEEP_MAX, |due| due.min(SLEEP_MAX))
    }

    /// When a connector's time is up, of which the descriptor says nothing; `None` if nobody is in a handshake.
    #[doc(hidden)] // for event loops of the bindings; not part of the stable API
    pub fn due_in(&self) -> Option<Duration> {
        let next = self.lock().waiting().filter_map(|(_, stage)| stage.deadline()).min();
        next.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// A message whose time begins now.
    fn due(&self, message: Incoming) -> Due {
        Due { message, deadline: Instant::now().checked_add(self.settings.handshake_timeout) }
    }

    /// Goes on with handshakes whose time is up, and with those that waited for a permit.
    fn overdue(&self) -> Result<Option<Bus>> {
        loop {
            let now = Instant::now();
            let token = {
                let state = self.lock();
                let free = state.permits.are_left();
                let due = |stage: &Stage| match stage {
                    Stage::Parked => free,
                    stage => stage.deadline().is_some_and(|deadline| deadline <= now),
                };
                state.first(due)
            };
            match token {
                None => return Ok(None),
                Some(token) => {
                    if let Some(bus) = self.advance(token, false)? {
                        return Ok(Some(bus));
                    }
                }
            }
        }
    }

    /// Goes on with one handshake, as far as it goes without waiting. It has to `leave` if it is silent still.
    fn advance(&self, token: u64, leave: bool) -> Result<Option<Bus>> {
        // Another thread may have it in hand or may have finished it.
        let Some(pending) = self.lock().by_token.get_mut(&token).and_then(Option::take) else { return Ok(None) };
        let in_hand = InHand { listener: self, token };
        let socket = pending.socket.clone();
        let over = |in_hand| {
            self.set.remove(socket.fd(0));
            drop(in_hand);
        };
        let outcome = match self.step(pending, leave) {
            Ok(Progress::Waits(pending)) => {
                let mut state = self.lock();
                // Under the lock: a thread that is told of the next bytes finds the handshake in its place.
                if !matches!(pending.stage, Stage::Parked) {
                    self.set.arm(socket.fd(0), token)?;
                }
                in_hand.put_back(&mut state, pending);
                Ok(None)
            }
            Ok(Progress::Done(bus)) => {
                over(in_hand);
                Ok(Some(bus))
            }
            Err(Failure::Peer(error)) => {
                over(in_hand);
                self.lock().refuse(&error);
                Ok(None)
            }
            Err(Failure::Own(error)) => {
                over(in_hand);
                Err(error.context(format_args!("a bus for {}", self.path.display())))
            }
        };
        self.listen(&mut self.lock(), true)?;
        outcome
    }

    /// Polls the listening socket, or leaves connectors in its backlog.
    fn listen(&self, state: &mut Handshakes, yes: bool) -> Result<()> {
        if state.paused == yes {
            self.set.enable(self.listening.fd(0), LISTENING, yes)?;
            state.paused = !yes;
        }
        Ok(())
    }

    /// Goes on with a handshake until something is due that is not here.
    fn step(&self, mut pending: Pending, leave: bool) -> std::result::Result<Progress, Failure> {
        let socket = pending.socket.fd(0);
        if let Stage::Greeting(due) | Stage::Welcomed { due, .. } = &mut pending.stage
            && !due.take(socket, leave).map_err(Failure::Peer)?
        {
            return Ok(Progress::Waits(pending));
        }
        if let Stage::Welcomed { halves, permit, .. } = pending.stage {
            let permit = Some(permit).filter(|_| self.settings.counts_buses);
            return Ok(Progress::Done(Bus::new(halves, pending.socket, pending.peer, permit)));
        }
        let permit = self.lock().permits.try_take();
        pending.stage = match permit {
            Some(permit) => self.welcome(&pending.socket, permit)?,
            None if self.settings.counts_buses => {
                let text = format!("{} connectors are connected already, as many as are taken", self.settings.peers);
                let busy = Error::new(ErrorKind::Busy, text);
                handshake::refuse(pending.socket.fd(0), &busy);
                return Err(Failure::Peer(busy));
            }
            None => Stage::Parked,
        };
        Ok(Progress::Waits(pending))
    }

    fn welcome(&self, socket: &fork::Entry, permit: Permit) -> std::result::Result<Stage, Failure> {
        let (halves, memory, size) = memory::create(&self.settings.plan, socket, self.settings.end).map_err(|e| {
            handshake::refuse(socket.fd(0), &e);
            Failure::Own(e)
        })?;
        let ack = handshake::welcome(socket.fd(0), memory.as_fd(), size, self.settings.plan.max_in_flight)
            .map_err(Failure::Peer)?;
        Ok(Stage::Welcomed { due: self.due(ack), halves, permit })
    }
}

/// Whose fault it is.
enum Failure {
    /// The connector's: it is refused, and that is all.
    Peer(Error),
    /// Ours: the caller of accept is told.
    Own(Error),
}

impl Stage {
    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Greeting(due) | Self::Welcomed { due, .. } => due.deadline,
            Self::Parked => None,
        }
    }
}

impl Due {
    /// Whether the message is here. One that is late is an error, and so is one that has to `leave` unless it is here.
    fn take(&mut self, socket: BorrowedFd<'_>, leave: bool) -> Result<bool> {
        if self.message.take(socket)? {
            return Ok(true);
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(self.message.expire(socket));
        }
        if leave {
            self.message.expire(socket);
            let text = format!("{HANDSHAKES_MAX} handshakes were under way, this one was silent the longest");
            return Err(Error::new(ErrorKind::TimedOut, text));
        }
        Ok(false)
    }
}

impl Handshakes {
    fn new(shortage: Shortage, peers: usize) -> Self {
        Self {
            by_token: HashMap::new(),
            last_token: 0,
            permits: Permits::new(peers),
            paused: false,
            refused: 0,
            last_refusal: None,
            shortage,
        }
    }

    /// Those that no thread has in hand.
    fn waiting(&self) -> impl Iterator<Item = (u64, &Stage)> {
        self.by_token.iter().filter_map(|(&token, pending)| Some((token, &pending.as_ref()?.stage)))
    }

    /// The one that came first.
    fn first(&self, is: impl Fn(&Stage) -> bool) -> Option<u64> {
        self.waiting().filter(|(_, stage)| is(stage)).map(|(token, _)| token).min()
    }

    fn refuse(&mut self, error: &Error) {
        self.refused += 1;
        self.last_refusal = Some(error.to_string());
    }
}

/// A handshake that this thread works on. Unless it was put back it is over when this is dropped.
struct InHand<'a> {
    listener: &'a Listener,
    token: u64,
}

impl InHand<'_> {
    fn put_back(self, state: &mut Handshakes, pending: Pending) {
        state.by_token.insert(self.token, Some(pending));
        std::mem::forget(self);
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.listener.lock().by_token.remove(&self.token);
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("path", &self.path).field("plan", &self.settings.plan).finish_non_exhaustive()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.listening.is_detached() {
            return;
        }
        // While our lock says that this name is ours. A connector that comes in between is told by the hang-up, and
        // waits for the next listener.
        self.place.remove_own(self.own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_handshake_counts_until_it_is_over_however_that_comes() {
        let path = format!("/dev/shm/ramway-unit-{}-in-hand", std::process::id());
        let listener = Listener::bind(&path).unwrap();
        let _silent = UnixStream::connect(&path).unwrap();
        assert_eq!(listener.try_accept().unwrap_err().kind(), ErrorKind::Empty);
        let token = listener.lock().first(|_| true).expect("a connector that has not said HELLO yet");
        let in_hand = || {
            let pending = listener.lock().by_token.get_mut(&token).and_then(Option::take).unwrap();
            (InHand { listener: &listener, token }, pending)
        };
        let (place, pending) = in_hand();
        let counted = || {
            let state = listener.lock();
            (state.by_token.len(), state.first(|_| true))
        };
        assert_eq!(counted(), (1, None));
        place.put_back(&mut listener.lock(), pending);
        assert_eq!(counted(), (1, Some(token)));
        let panics = std::panic::AssertUnwindSafe(|| {
            let _in_hand = in_hand();
            std::panic::resume_unwind(Box::new("in the middle of a step"));
        });
        std::panic::catch_unwind(panics).unwrap_err();
        assert_eq!(counted(), (0, None));
    }
}
