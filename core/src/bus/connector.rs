//! The side that connects.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use super::handshake::{self, Greeting, Offer};
use super::memory;
use super::place::Place;
use super::{Bus, check_peer};
use crate::facts::{CONNECT_PAUSE_MIN, CONNECT_TIMEOUT, HANDSHAKE_FEATURES, PERMISSION_GRACE, RPC_FEATURES};
use crate::origin::Origin;
use crate::ring::options::{EndOptions, end_options};
use crate::segment::Attempts;
use crate::sys::fork;
use crate::sys::socket::{self, Miss};
use crate::{Error, ErrorKind, Result};

/// How to connect to a [`Listener`](crate::Listener): made by [`Bus::connector`].
///
/// ```no_run
/// # fn main() -> ramway::Result<()> {
/// use std::time::Duration;
/// let bus = ramway::Bus::connector("engine").timeout(Duration::from_secs(1)).connect()?;
/// println!("connected to process {:?} of user {}", bus.peer_pid(), bus.peer_uid());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Connector {
    name: OsString,
    timeout: Duration,
    allowed: Vec<u32>,
    /// What the bus has to carry.
    features: u32,
    end: EndOptions,
}

/// What one attempt came to.
enum Step {
    Done(Box<Bus>),
    /// What to say if it stays like this.
    Retry(Error),
}

impl Connector {
    pub(super) fn new(name: &OsStr) -> Self {
        Self {
            name: name.into(),
            timeout: CONNECT_TIMEOUT,
            allowed: Vec::new(),
            features: HANDSHAKE_FEATURES,
            end: EndOptions::default(),
        }
    }

    /// How long to wait for a listener that is not there yet, does not accept, or is flooded. Default 10 s. It
    /// has to be long enough for the listener to answer.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Other users whose listeners will do; without this, only those of our own effective user.
    pub fn allow_uids(mut self, uids: &[u32]) -> Self {
        self.allowed = uids.to_vec();
        self
    }

    /// To an RPC server.
    #[doc(hidden)] // for the client, and for tests that are a client by hand; not part of the stable API
    pub fn rpc(mut self) -> Self {
        self.features = RPC_FEATURES;
        self
    }

    end_options!();

    /// Connects. Blocks until the listener's [`accept`](crate::Listener::accept) has served us, at most the time-out.
    ///
    /// # Errors
    /// `NotFound` if there was no listener until the deadline, `TimedOut` if there was one but it did not answer,
    /// `PermissionDenied` if either side does not deal with the other's user or the socket cannot be reached,
    /// `AbiMismatch` if the two sides speak different versions, `Corrupt` or `PeerDead` if the listener breaks the
    /// handshake, or what the listener gave as its reason (`NoSpace` for example).
    pub fn connect(&self) -> Result<Bus> {
        self.connect_while(|| true)
    }

    /// [`connect`](Self::connect) for languages that handle signals or cancellation: asks `go_on` at least
    /// every 100 ms, and gives `Interrupted` once it says no.
    #[doc(hidden)]
    pub fn connect_while(&self, mut go_on: impl FnMut() -> bool) -> Result<Bus> {
        let shown = self.name.to_string_lossy();
        let what = if self.features == RPC_FEATURES { "RPC server" } else { "bus" };
        let deadline = Instant::now().checked_add(self.timeout);
        let mut attempts = Attempts::new(CONNECT_PAUSE_MIN);
        loop {
            let early = attempts.elapsed() < PERMISSION_GRACE;
            let missed = match self.attempt(early, deadline, &mut go_on) {
                Ok(Step::Done(bus)) => return Ok(*bus),
                Ok(Step::Retry(error)) => error,
                Err(e) => return Err(e.context(format_args!("connecting to the {what} '{shown}'"))),
            };
            attempts.again(self.timeout, missed, &mut go_on).map_err(|e| match e.kind() {
                ErrorKind::Interrupted => e.context(format_args!("connecting to the {what} '{shown}'")),
                _ => e.context(format_args!("connecting to the {what} '{shown}' for {:?}", self.timeout)),
            })?;
        }
    }

    fn attempt(&self, early: bool, deadline: Option<Instant>, go_on: &mut dyn FnMut() -> bool) -> Result<Step> {
        let place = match Place::resolve(&self.name, false) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Step::Retry(e)),
            place => place?,
        };
        let mut miss = None;
        let entry = match fork::Entry::open(|| {
            Ok(match socket::connect(place.dir(), place.dir_path(), &place.socket_file)? {
                Ok(fd) => vec![fd],
                Err(why) => {
                    miss = Some(why);
                    Vec::new()
                }
            })
        }) {
            Err(e) if e.kind() == ErrorKind::PermissionDenied && early => {
                return Ok(Step::Retry(e.context(place.socket_path().display())));
            }
            entry => entry.map_err(|e| e.context(place.socket_path().display()))?,
        };
        if let Some(miss) = miss {
            return missed(&place, miss).map(Step::Retry);
        }
        let peer = socket::credentials(entry.fd(0))?;
        check_peer(peer, &self.allowed, "allow_uids")?;
        let Offer { memory, size, max_in_flight } = match handshake::greet(entry.fd(0), self.features, deadline, go_on)
        {
            Ok(Greeting::Memory(offer)) => offer,
            Ok(Greeting::HungUp) => return Ok(gone()),
            // This process was stopped for so long that the listener gave up; or it serves nobody.
            Err(e) if e.kind() == ErrorKind::TimedOut => {
                return Ok(Step::Retry(e.context("the listener did not answer in time: is it accepting?")));
            }
            Err(e) => return Err(e),
        };
        let halves = memory::open(memory, size, self.features, &entry, self.end, &Origin::named("bus", &self.name));
        let told = handshake::acknowledge(entry.fd(0), &halves);
        let halves = halves?;
        // A listener that has the ACK has accepted us: if it has hung up since, what it sent is to be received first.
        if told.is_err() {
            return Ok(gone());
        }
        let mut bus = Bus::new(halves, entry, peer, None);
        bus.max_in_flight = max_in_flight;
        Ok(Step::Done(Box::new(bus)))
    }
}

fn gone() -> Step {
    Step::Retry(Error::new(
        ErrorKind::NotFound,
        "the listener ended before it answered, and no other one came: start it again",
    ))
}

/// What to say when nobody takes the connection until the deadline.
fn missed(place: &Place, miss: Miss) -> Result<Error> {
    let path = place.socket_path();
    let path = path.display();
    if let Some(what) = place.no_socket() {
        return Err(Error::new(ErrorKind::InvalidArgument, format!("{path} is {what}, not a listener's socket")));
    }
    let lives = place.listener_lives() == Some(true);
    Ok(match miss {
        Miss::Full => Error::new(
            ErrorKind::TimedOut,
            format!("the backlog of {path} stayed full: its listener does not accept as fast as others connect"),
        ),
        Miss::Absent | Miss::Refused if lives => {
            Error::new(ErrorKind::TimedOut, format!("the listener of {path} is alive but not accepting"))
        }
        Miss::Absent => Error::new(
            ErrorKind::NotFound,
            format!("no listener made the socket {path}: start it, or check the name and RAMWAY_DIR"),
        ),
        Miss::Refused => {
            Error::new(ErrorKind::NotFound, format!("the listener that made {path} is gone: start it again"))
        }
    })
}
