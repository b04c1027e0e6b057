//! The side that listens: many handshakes at once, none of which can hold up another.

mod backlog;
mod permit;

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
use super::memory::{self, AttachOptions, Halves, Plan};
use super::place::Place;
use crate::segment::{FileId, NamedLink};
use crate::sys::{fork, socket};
use crate::{Error, ErrorKind, Result};
use backlog::Shortage;
use permit::{Permit, Permits};

/// What the listening socket is reported as; connections count up from 1.
const LISTENING: u64 = 0;
/// So many handshakes at a time: the oldest silent one makes room for the next connector.
const HANDSHAKES_MAX: usize = 64;
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
    pub(super) plan: Plan,
    pub(super) allowed: Vec<u32>,
    pub(super) handshake_timeout: Duration,
    pub(super) attach_options: AttachOptions,
}

/// The handshakes that are under way.
struct Handshakes {
    by_token: HashMap<u64, Pending>,
    last_token: u64,
    /// Handshakes that one of the threads is just working on, which are not in `by_token`.
    in_hand: usize,
    /// For those that may be welcomed.
    permits: Permits,
    /// The listening socket is not looked at, because there are enough handshakes.
    paused: bool,
    refused: u64,
    last_refusal: Option<String>,
    shortage: Shortage,
}

struct Pending {
    token: u64,
    socket: fork::Entry,
    peer: socket::Credentials,
    incoming: Incoming,
    /// `None` = never.
    deadline: Option<Instant>,
    stage: Stage,
}

enum Stage {
    /// HELLO is due.
    Greeting,
    /// HELLO is here; another connector has to fail first.
    Parked,
    /// ACK is due.
    Welcomed { halves: Halves, _permit: Permit },
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
                    // A call that never waits only looks: its caller does the waiting.
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
        let next = self.lock().by_token.values().filter_map(|p| p.deadline).min();
        next.map(|due| due.saturating_duration_since(Instant::now()))
    }

    fn handshake_deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.settings.handshake_timeout)
    }

    /// Sees to handshakes whose time is up, and to those that waited for a place.
    fn overdue(&self) -> Result<Option<Bus>> {
        loop {
            let now = Instant::now();
            let token = {
                let state = self.lock();
                let free = state.permits.are_left();
                let due =
                    |p: &&Pending| p.deadline.is_some_and(|d| d <= now) || (free && matches!(p.stage, Stage::Parked));
                // First come, first served.
                state.by_token.values().filter(due).map(|p| p.token).min()
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
        let mut pending = {
            let mut state = self.lock();
            // Another thread may have it in hand or may have finished it.
            let Some(pending) = state.by_token.remove(&token) else { return Ok(None) };
            state.in_hand += 1;
            pending
        };
        let outcome = self.step(&mut pending, leave);
        let mut state = self.lock();
        state.in_hand -= 1;
        if state.paused {
            state.paused = false;
            self.set.enable(self.listening.fd(0), LISTENING, true)?;
        }
        match outcome {
            Ok(false) => {
                if !matches!(pending.stage, Stage::Parked) {
                    self.set.arm(pending.socket.fd(0), token)?;
                }
                state.by_token.insert(token, pending);
                Ok(None)
            }
            Ok(true) => {
                self.set.remove(pending.socket.fd(0));
                let Stage::Welcomed { halves, .. } = pending.stage else { unreachable!("only an ACK completes") };
                Ok(Some(Bus::new(halves, pending.socket, pending.peer)))
            }
            Err(failure) => {
                self.set.remove(pending.socket.fd(0));
                match failure {
                    Failure::Peer(error) => {
                        state.refuse(&error);
                        Ok(None)
                    }
                    Failure::Own(error) => Err(error.context(format_args!("a bus for {}", self.path.display()))),
                }
            }
        }
    }

    /// `Ok(true)`: the connector has acknowledged. `Ok(false)`: something is still due.
    fn step(&self, pending: &mut Pending, leave: bool) -> std::result::Result<bool, Failure> {
        let socket = pending.socket.fd(0);
        if !matches!(pending.stage, Stage::Parked) {
            match pending.incoming.step(socket).map_err(Failure::Peer)? {
                true if matches!(pending.stage, Stage::Welcomed { .. }) => return Ok(true),
                true => {}
                false if pending.deadline.is_some_and(|d| d <= Instant::now()) => {
                    return Err(Failure::Peer(pending.incoming.expire(socket)));
                }
                false if leave => {
                    pending.incoming.expire(socket);
                    let text = format!("{HANDSHAKES_MAX} handshakes were under way, this one was silent the longest");
                    return Err(Failure::Peer(Error::new(ErrorKind::TimedOut, text)));
                }
                false => return Ok(false),
            }
        }
        let permit = self.lock().permits.try_take();
        let Some(permit) = permit else {
            (pending.stage, pending.deadline) = (Stage::Parked, None);
            return Ok(false);
        };
        self.welcome(pending, permit)?;
        Ok(false)
    }

    fn welcome(&self, pending: &mut Pending, permit: Permit) -> std::result::Result<(), Failure> {
        let (halves, memory, size) = memory::create(&self.settings.plan, &pending.socket, self.settings.attach_options)
            .map_err(|e| {
                handshake::refuse(pending.socket.fd(0), &e);
                Failure::Own(e)
            })?;
        pending.incoming.welcome(pending.socket.fd(0), memory.as_fd(), size).map_err(Failure::Peer)?;
        pending.stage = Stage::Welcomed { halves, _permit: permit };
        pending.deadline = self.handshake_deadline();
        Ok(())
    }
}

/// Whose fault it is.
enum Failure {
    /// The connector's: it is refused, and that is all.
    Peer(Error),
    /// Ours: whoever called accept should know.
    Own(Error),
}

impl Handshakes {
    fn new(shortage: Shortage, peers: usize) -> Self {
        Self {
            by_token: HashMap::new(),
            last_token: 0,
            in_hand: 0,
            permits: Permits::new(peers),
            paused: false,
            refused: 0,
            last_refusal: None,
            shortage,
        }
    }

    fn refuse(&mut self, error: &Error) {
        self.refused += 1;
        self.last_refusal = Some(error.to_string());
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
