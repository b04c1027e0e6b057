//! What can be waited for together with others, and the wait.

use crate::args::Timeout;
use crate::bus::Bus;
use crate::bus::listener::Listener;
use crate::endpoint::{CoreEnd, End, Using};
use crate::errors::{error, is, raise};
use crate::many::select::Room;
use crate::region::Region;
use crate::ring::receiver::Receiver;
use crate::ring::sender::Sender;
use crate::waiting::POLL_INTERVAL;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use ramway::{ErrorKind, Holding, Readable, Select, Source};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest sleep of a thread that holds messages: their sender may come to wait for the room that they take.
const HOLDER_INTERVAL: Duration = Duration::from_millis(10);

/// What can be waited for.
pub(crate) enum Member {
    Receiver(Py<Receiver>),
    Room(Py<Sender>, usize),
    Region(Py<Region>),
    Listener(Py<Listener>),
    /// A listener that no object of Python's stands for.
    Door(Arc<ramway::Listener>),
    /// Of the caller, who keeps it open.
    Descriptor(RawFd),
}

impl Member {
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(receiver) = object.cast::<Receiver>() {
            return Ok(Self::Receiver(receiver.clone().unbind()));
        }
        if let Ok(room) = object.cast::<Room>() {
            let room = room.get();
            return Ok(Self::Room(room.sender.clone_ref(object.py()), room.len));
        }
        if let Ok(bus) = object.cast::<Bus>() {
            return Ok(Self::Receiver(Bus::receiver(bus)?));
        }
        if let Ok(region) = object.cast::<Region>() {
            return Ok(Self::Region(region.clone().unbind()));
        }
        if let Ok(listener) = object.cast::<Listener>() {
            return Ok(Self::Listener(listener.clone().unbind()));
        }
        if object.cast::<Sender>().is_ok() {
            let text = "a sender is waited for as room for a message of some size: name it as sender.room(n)";
            return Err(PyTypeError::new_err(text));
        }
        let number = if object.is_instance_of::<PyInt>() { object.clone() } else { fileno(object)? };
        let fd: RawFd = number.extract()?;
        if fd < 0 {
            let text = format!("descriptor {fd}: expected an open descriptor");
            return Err(error(object.py(), ErrorKind::InvalidArgument, text));
        }
        Ok(Self::Descriptor(fd))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Receiver(receiver) => visit.call(receiver),
            Self::Room(sender, _) => visit.call(sender),
            Self::Region(region) => visit.call(region),
            Self::Listener(listener) => visit.call(listener),
            Self::Door(_) | Self::Descriptor(_) => Ok(()),
        }
    }

    /// Whether both are the same end.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Receiver(one), Self::Receiver(other)) => one.is(other),
            (Self::Room(one, _), Self::Room(other, _)) => one.is(other),
            _ => false,
        }
    }

    fn enter<'a>(&'a self, py: Python<'_>) -> PyResult<Entered<'a>> {
        Ok(match self {
            Self::Receiver(receiver) => {
                let this = receiver.get();
                Entered::Receiver { core: this.enter(py)?, this, fd: this.endpoint.known_descriptor() }
            }
            Self::Room(sender, len) => {
                let this = sender.get();
                Entered::Room { core: this.enter(py)?, this, len: *len, fd: this.endpoint.known_descriptor() }
            }
            Self::Region(region) => Entered::Region { core: region.get().shared.core(py)?, this: region.get() },
            Self::Listener(listener) => {
                Entered::Listener { core: listener.get().shared.core(py)?, this: Some(listener.get()) }
            }
            Self::Door(core) => Entered::Listener { core: core.clone(), this: None },
            Self::Descriptor(fd) => Entered::Descriptor(*fd),
        })
    }
}

fn fileno<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Ok(method) = object.getattr("fileno") else {
        let text = format!(
            "cannot wait for a {}: expected a Receiver, Subscriber, Bus, Sender.room(n), Region, Listener, Inbox, a descriptor \
             or what has a fileno()",
            object.get_type().name()?
        );
        return Err(PyTypeError::new_err(text));
    };
    method.call0()
}

/// A member in use by this call. `fd`: its readiness descriptor, where it has one, which is waited for instead of its word.
enum Entered<'a> {
    Receiver { core: Using<'a, Receiver>, this: &'a Receiver, fd: Option<RawFd> },
    Room { core: Using<'a, Sender>, this: &'a Sender, len: usize, fd: Option<RawFd> },
    Region { core: Arc<ramway::Region>, this: &'a Region },
    Listener { core: Arc<ramway::Listener>, this: Option<&'a Listener> },
    Descriptor(RawFd),
}

impl Entered<'_> {
    /// Whether there is nothing now, for those whose readiness descriptor says more than that: it is readable until an attempt
    /// has found nothing. That attempt is made here.
    fn is_idle(&mut self) -> bool {
        let ready = match self {
            Self::Receiver { core, fd: Some(_), .. } => core.raw_endpoint().ready(0),
            Self::Room { core, len, fd: Some(_), .. } => core.raw_endpoint().ready(*len),
            _ => return false,
        };
        matches!(ready, Ok(false))
    }

    fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            Self::Receiver { this, .. } => this.endpoint.check_open(py),
            Self::Room { this, .. } => this.endpoint.check_open(py),
            Self::Region { this, .. } => this.shared.check_open(py),
            Self::Listener { this: Some(this), .. } => this.shared.check_open(py),
            Self::Listener { this: None, .. } | Self::Descriptor(_) => Ok(()),
        }
    }

    /// Before a sleep: what was received last must not be in the sender's way. True if messages are held.
    fn make_room(&mut self) -> bool {
        match self {
            Self::Receiver { core, this, .. } => this.make_room_before_sleep(core),
            _ => false,
        }
    }

    fn source(&mut self) -> Box<dyn Source + '_> {
        match self {
            Self::Receiver { fd: Some(fd), .. } | Self::Room { fd: Some(fd), .. } => descriptor(*fd),
            Self::Receiver { core, .. } => match &mut **core {
                End::Ring(receiver) => Box::new(Holding(receiver)),
                End::Topic(subscriber) => Box::new(Holding(subscriber)),
            },
            Self::Room { core, len, .. } => match &mut **core {
                End::Ring(sender) => Box::new(sender.room(*len)),
                End::Topic(publisher) => Box::new(publisher.room(*len)),
            },
            Self::Region { core, .. } => Box::new(&**core),
            Self::Listener { core, .. } => Box::new(Readable((**core).as_fd())),
            Self::Descriptor(fd) => descriptor(*fd),
        }
    }
}

fn descriptor<'a>(fd: RawFd) -> Box<dyn Source + 'a> {
    // SAFETY: not −1. An end's own stays open while the end is in use by this call; a caller's is the caller's to keep open, and
    // is only polled: one that is not open is ready.
    Box::new(Readable(unsafe { BorrowedFd::borrow_raw(fd) }))
}

/// What is used by one thread while the interpreter lock is given up.
struct Apart<T>(T);

// SAFETY: the ends are in use by this call alone, whichever thread makes it, and the closure that this is carried into runs in
// the same thread.
unsafe impl<T> Send for Apart<T> {}

/// Waits until one of the members is ready, and gives the indices of all that are, in the core's fair order; none if the time
/// passed. Signals' handlers run meanwhile. The members are in use until then, as by any other call.
pub(crate) fn wait<'a>(
    py: Python<'_>,
    select: &mut Select,
    members: impl Iterator<Item = &'a Member> + Clone,
    timeout: Timeout,
) -> PyResult<Vec<usize>> {
    let mut entered = Vec::with_capacity(members.size_hint().0);
    for (index, member) in members.clone().enumerate() {
        entered.push(member.enter(py).map_err(|e| given_twice(py, members.clone(), index, e))?);
    }
    if entered.is_empty() && timeout.0.is_none() {
        let text = "waiting for none of 0 sources, as long as it takes: name a source or a timeout";
        return Err(error(py, ErrorKind::InvalidArgument, text));
    }
    for member in &mut entered {
        member.is_idle();
    }
    let ready = check(py, select, &mut entered)?;
    if !ready.is_empty() || timeout.0 == Some(Duration::ZERO) {
        return Ok(ready);
    }
    let deadline = timeout.0.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let mut longest = POLL_INTERVAL;
        for member in &mut entered {
            if member.make_room() {
                longest = HOLDER_INTERVAL;
            }
        }
        let left = deadline.map_or(longest, |at| at.saturating_duration_since(Instant::now()).min(longest));
        let ready = sleep(py, select, &mut entered, left)?;
        if !ready.is_empty() {
            return Ok(ready);
        }
        py.check_signals()?;
        for member in &entered {
            member.check_open(py)?;
        }
        if deadline.is_some_and(|at| at <= Instant::now()) {
            return Ok(Vec::new());
        }
    }
}

/// Who is ready now.
fn check(py: Python<'_>, select: &mut Select, entered: &mut [Entered<'_>]) -> PyResult<Vec<usize>> {
    wait_once(select, entered, Duration::ZERO).map_err(|e| raise(py, e))
}

/// Who is ready within a poll interval.
fn sleep(py: Python<'_>, select: &mut Select, entered: &mut [Entered<'_>], timeout: Duration) -> PyResult<Vec<usize>> {
    let used = Apart((select, entered));
    let ready = py.detach(move || {
        let used = used;
        let Apart((select, entered)) = used;
        wait_once(select, entered, timeout)
    });
    ready.map_err(|e| raise(py, e))
}

fn wait_once(select: &mut Select, entered: &mut [Entered<'_>], timeout: Duration) -> ramway::Result<Vec<usize>> {
    let mut ready = {
        let mut sources: Vec<Box<dyn Source + '_>> = entered.iter_mut().map(Entered::source).collect();
        let mut all: Vec<&mut dyn Source> = sources.iter_mut().map(|source| &mut **source as &mut dyn Source).collect();
        select.wait(&mut all, Some(timeout))?.to_vec()
    };
    ready.retain(|index| !entered[*index].is_idle());
    Ok(ready)
}

/// Why a member cannot be used: where it is because the same end comes twice, that.
#[cold]
fn given_twice<'a>(
    py: Python<'_>,
    mut members: impl Iterator<Item = &'a Member> + Clone,
    index: usize,
    cause: PyErr,
) -> PyErr {
    let Some(member) = members.clone().nth(index).filter(|_| is(py, &cause, ErrorKind::Busy)) else { return cause };
    match members.position(|other| other.is_same(member)) {
        Some(first) if first < index => {
            let text = format!("sources {first} and {index} are the same: name each once");
            error(py, ErrorKind::InvalidArgument, text)
        }
        _ => cause,
    }
}
