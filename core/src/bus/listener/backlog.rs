//! From the backlog to a handshake: who has to leave when there are too many, and what happens without descriptors.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{Handshakes, Listener, Pending, Stage};
use crate::bus::handshake::{self, Incoming};
use crate::bus::{Bus, check_peer};
use crate::facts::{ACCEPT_PAUSE, HANDSHAKES_MAX, TURNED_AWAY_MAX};
use crate::sys::{fork, os, socket};
use crate::{Error, ErrorKind, Result};

/// What is done when descriptors run out.
pub(super) struct Shortage {
    /// Closed to make room for a connector that is told why, and then opened again. `None` if others were faster.
    reserve: Option<OwnedFd>,
    /// Until then an accept that may wait does.
    pause_until: Option<Instant>,
}

impl Shortage {
    /// `any` descriptor will do, if a fork's child may keep it.
    pub(super) fn new(any: BorrowedFd<'_>) -> Result<Self> {
        let reserve = duplicate(any).map_err(os("keeping a descriptor in reserve"))?;
        Ok(Self { reserve: Some(reserve), pause_until: None })
    }

    /// How long an accept has to leave the listening socket alone.
    pub(super) fn pause(&mut self) -> Option<Duration> {
        let left = self.pause_until?.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        if left.is_none() {
            self.pause_until = None;
        }
        left
    }
}

fn duplicate(any: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(any, 0)
}

impl Listener {
    /// Takes what waits in the backlog, and checks for its HELLO at once. At most as many as there may be handshakes,
    /// then those that wait for longer have their turn.
    pub(super) fn take_connections(&self) -> Result<Option<Bus>> {
        for _ in 0..HANDSHAKES_MAX {
            let token = {
                let mut state = self.lock();
                if state.by_token.len() >= HANDSHAKES_MAX && state.longest_silent().is_none() {
                    // Nobody leaves before it has been served: the others wait in the backlog.
                    self.listen(&mut state, false)?;
                    return Ok(None);
                }
                if state.shortage.reserve.is_none() {
                    state.shortage.reserve = duplicate(self.place.dir()).ok();
                }
                match self.take_one(&mut state)? {
                    Taken::Nobody => return Ok(None),
                    Taken::Refused => continue,
                    Taken::Token(token) => token,
                }
            };
            if let Some(bus) = self.advance(token, false)? {
                return Ok(Some(bus));
            }
            while let Some(token) = self.supernumerary() {
                if let Some(bus) = self.advance(token, true)? {
                    return Ok(Some(bus));
                }
            }
        }
        Ok(None)
    }

    fn take_one(&self, state: &mut Handshakes) -> Result<Taken> {
        let mut none = false;
        let accepted = fork::Entry::open(|| {
            let accepted = socket::accept(self.listening.fd(0))?;
            none = accepted.is_none();
            Ok(accepted.into_iter().collect())
        });
        let socket = match accepted {
            Ok(socket) => socket,
            Err(error) => return Err(self.cannot_accept(state, error)),
        };
        if none {
            return Ok(Taken::Nobody);
        }
        let peer = socket::credentials(socket.fd(0))?;
        if let Err(error) = check_peer(peer, &self.settings.allowed, "allow_uids") {
            handshake::refuse(socket.fd(0), &error);
            state.refuse(&error);
            return Ok(Taken::Refused);
        }
        state.last_token += 1;
        let token = state.last_token;
        self.set.add(socket.fd(0), token, false)?;
        let stage = Stage::Greeting(self.due(Incoming::hello(self.settings.plan.features())));
        state.by_token.insert(token, Some(Pending { socket, peer, stage }));
        Ok(Taken::Token(token))
    }

    /// Who has to leave, if there are more handshakes than there may be.
    fn supernumerary(&self) -> Option<u64> {
        let state = self.lock();
        if state.by_token.len() > HANDSHAKES_MAX { state.longest_silent() } else { None }
    }

    /// What accept says when no connection can be taken. The connectors are told first, where a descriptor is all that
    /// is missing.
    fn cannot_accept(&self, state: &mut Handshakes, error: Error) -> Error {
        let mut told = 0;
        if socket::is_shortage(&error) {
            while told < TURNED_AWAY_MAX && self.turn_away(state, &error) {
                told += 1;
            }
        }
        state.shortage.pause_until = Instant::now().checked_add(ACCEPT_PAUSE);
        let text = match told {
            0 => "accepting a connection".to_owned(),
            n => format!("no descriptor is left for a bus, {n} connectors were told; raise the limit (ulimit -n)"),
        };
        error.context(text).context(self.path.display())
    }

    /// Accepts one connector in the place of the reserve and tells it why it is not served.
    fn turn_away(&self, state: &mut Handshakes, error: &Error) -> bool {
        if state.shortage.reserve.take().is_none() {
            return false;
        }
        let mut one = false;
        // Forks are held off, so no child inherits the connection.
        let done = fork::Entry::open(|| {
            if let Some(socket) = socket::accept(self.listening.fd(0))? {
                handshake::refuse(std::os::fd::AsFd::as_fd(&socket), error);
                one = true;
            }
            Ok(Vec::new())
        });
        drop(done);
        state.shortage.reserve = duplicate(self.place.dir()).ok();
        if one {
            state.refuse(&Error::new(ErrorKind::NoSpace, "no descriptor was left for a bus"));
        }
        one
    }
}

/// What taking one connection from the backlog came to.
enum Taken {
    Nobody,
    Refused,
    Token(u64),
}

impl Handshakes {
    /// The oldest that has not said HELLO, or else the oldest that has not said ACK.
    fn longest_silent(&self) -> Option<u64> {
        let greeting = self.first(|stage| matches!(stage, Stage::Greeting(_)));
        greeting.or_else(|| self.first(|stage| matches!(stage, Stage::Welcomed { .. })))
    }
}
