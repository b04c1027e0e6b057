//! Ends that are received from in a fair order, by a thread or by a task.
//!
//! A thread waits for them by the core's `Select`. A task waits for one descriptor, an epoll set with the readiness
//! descriptor of each: in the event loop they are one handle, with the rules of any other (`waiting/watch.rs`).

use crate::args::{Policy, Timeout};
use crate::endpoint::{CoreEnd, Flag, Gil};
use crate::errors::{self, os_error, unless};
use crate::many::member::{self, Member};
use crate::many::select::Waiter;
use crate::ring::message::Message;
use crate::ring::receiver::Receiver;
use crate::waiting::operation::{HOLDER_INTERVAL, LISTENER_INTERVAL, TIMED_INTERVAL};
use crate::waiting::watch::{Waits, Watch};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use ramway::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often listeners are asked while others have something: each time costs a system call.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(1);
/// The longest sleep beside a listener: handshakes that have gone silent end inside its calls.
const HANDSHAKE_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Sources {
    list: Gil<Vec<Arc<Entry>>>,
    /// Whose turn it is.
    next: Gil<usize>,
    waiter: Waiter,
    pub(crate) waits: Waits,
    /// The epoll set, once a task has waited.
    set: Gil<Option<OwnedFd>>,
    /// "merge" or "inbox", for errors.
    what: &'static str,
}

/// One of them.
pub(crate) struct Entry {
    /// What its messages come with.
    pub(crate) who: Py<PyAny>,
    pub(crate) member: Member,
    /// Its place among the producers of an inbox, free when this goes.
    _place: Option<ramway::Place>,
    /// A duplicate of its descriptor, which is in the epoll set.
    fd: Gil<Option<OwnedFd>>,
    /// Somebody has put it into the epoll set, or is about to.
    registered: Flag,
    /// It has no descriptor.
    timed: Flag,
    /// A producer was told that nothing more is wanted.
    pub(crate) told: Flag,
    /// When a listener was last asked.
    asked: Gil<Option<Instant>>,
}

/// What one of them gave.
pub(crate) enum Value {
    Message(Py<Message>),
    Object(Py<PyAny>),
    Bus(ramway::Bus),
}

pub(crate) enum Next {
    Value(Arc<Entry>, Value),
    /// One of them raised this.
    Raised(Arc<Entry>, PyErr),
    /// Nobody has anything now.
    Nothing,
    /// There is nobody.
    Nobody,
}

impl Entry {
    fn is_listener(&self) -> bool {
        matches!(self.member, Member::Listener(_) | Member::Door(_))
    }

    /// What it has now. A listener is asked only if that is due, or `all` are to be.
    fn attempt(&self, py: Python<'_>, all: bool) -> PyResult<Option<Value>> {
        if self.is_listener() {
            let now = Instant::now();
            if !all && self.asked.get().is_some_and(|asked| now.duration_since(asked) < ACCEPT_INTERVAL) {
                return Ok(None);
            }
            self.asked.set(Some(now));
        }
        match &self.member {
            Member::Receiver(receiver) => Ok(Receiver::message_now(receiver.bind(py))?.map(Value::Message)),
            Member::Region(region) => {
                let notified: bool = region.bind(py).call_method0(intern!(py, "try_wait"))?.extract()?;
                Ok(notified.then(|| Value::Object(py.None())))
            }
            Member::Listener(listener) => {
                let bus = listener.bind(py).call_method0(intern!(py, "try_accept"))?;
                Ok((!bus.is_none()).then(|| Value::Object(bus.unbind())))
            }
            Member::Door(listener) => match listener.try_accept() {
                Err(e) if e.kind() == ErrorKind::Empty => Ok(None),
                accepted => accepted.map(|bus| Some(Value::Bus(bus))).map_err(|e| crate::errors::raise(py, e)),
            },
            Member::Room(..) | Member::Descriptor(_) => unreachable!("nothing comes out of these"),
        }
    }

    /// A duplicate of its readiness descriptor, which can be taken out of the epoll set after the end was closed; `None` of what
    /// has none.
    fn duplicate(&self, py: Python<'_>) -> PyResult<Option<OwnedFd>> {
        let fd = match &self.member {
            Member::Receiver(receiver) => receiver.get().duplicate(py),
            Member::Region(region) => region.get().duplicate(py),
            Member::Listener(listener) => listener.get().duplicate(py),
            Member::Door(listener) => {
                listener.as_fd().try_clone_to_owned().map_err(|e| os_error(py, errors::DUPLICATE, e))
            }
            Member::Room(..) | Member::Descriptor(_) => unreachable!("nothing comes out of these"),
        };
        unless(py, ErrorKind::Unsupported, fd)
    }

    /// Whether this process has closed it.
    pub(crate) fn is_closed(&self) -> bool {
        match &self.member {
            Member::Receiver(receiver) => receiver.get().endpoint.is_shut(),
            Member::Region(region) => region.get().shared.is_closed(),
            Member::Listener(listener) => listener.get().shared.is_closed(),
            Member::Door(_) | Member::Room(..) | Member::Descriptor(_) => false,
        }
    }

    /// What a task waits for it by.
    fn waits(&self) -> Option<&Waits> {
        match &self.member {
            Member::Receiver(receiver) => Some(&receiver.get().endpoint.waits),
            Member::Region(region) => Some(&region.get().shared.waits),
            Member::Listener(listener) => Some(&listener.get().shared.waits),
            Member::Door(_) | Member::Room(..) | Member::Descriptor(_) => None,
        }
    }
}

impl Sources {
    pub(crate) fn new(policy: Policy, what: &'static str) -> Self {
        Self {
            list: Gil::default(),
            next: Gil::default(),
            waiter: Waiter::new(policy),
            waits: Waits::default(),
            set: Gil::default(),
            what,
        }
    }

    /// All of them, as they are now.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.list.with(|list| list.clone())
    }

    pub(crate) fn add(
        &self,
        py: Python<'_>,
        who: Py<PyAny>,
        member: Member,
        place: Option<ramway::Place>,
    ) -> PyResult<()> {
        let entry = Arc::new(Entry {
            who,
            member,
            _place: place,
            fd: Gil::default(),
            registered: Flag::default(),
            timed: Flag::default(),
            told: Flag::default(),
            asked: Gil::default(),
        });
        // Listed first: who makes the set meanwhile registers what is listed.
        self.list.with(|list| list.push(entry.clone()));
        if self.set.with(|set| set.is_some())
            && let Err(e) = self.register(py, &entry)
        {
            self.remove(&entry);
            return Err(e);
        }
        if let (Some(watch), Some(waits)) = (self.waits.known(py), entry.waits()) {
            waits.tell(watch);
        }
        Ok(())
    }

    /// Takes one of them out; false if it was not there.
    pub(crate) fn remove(&self, entry: &Arc<Entry>) -> bool {
        let removed = self.list.with(|list| {
            let index = list.iter().position(|other| Arc::ptr_eq(other, entry))?;
            let removed = list.remove(index);
            self.next.with(|next| *next -= usize::from(index < *next));
            Some(removed)
        });
        if let Some(fd) = entry.fd.replace(None) {
            self.set.with(|set| {
                if let Some(set) = set {
                    // SAFETY: descriptors of ours. What the end's own close has taken out already is not there, which is fine.
                    unsafe {
                        libc::epoll_ctl(set.as_raw_fd(), libc::EPOLL_CTL_DEL, fd.as_raw_fd(), std::ptr::null_mut())
                    };
                }
            });
        }
        // Dropped here, not under the list: that can run anything.
        removed.is_some()
    }

    /// What the next one has that has something, without waiting; the one after it is the first to be asked next time.
    pub(crate) fn next(&self, py: Python<'_>) -> Next {
        let mut listens = false;
        for all in [false, true] {
            if all && !listens {
                break;
            }
            let (count, first) = (self.list.with(|list| list.len()), self.next.get());
            if count == 0 {
                return Next::Nobody;
            }
            for step in 0..count {
                let index = (first + step) % count;
                // It may change meanwhile: a message's creation can run anything.
                let Some(entry) = self.list.with(|list| list.get(index).cloned()) else { continue };
                listens |= entry.is_listener();
                match entry.attempt(py, all) {
                    Ok(None) => {}
                    Ok(Some(value)) => {
                        self.next.set(index + 1);
                        return Next::Value(entry, value);
                    }
                    Err(e) => return Next::Raised(entry, e),
                }
            }
        }
        Next::Nothing
    }

    /// Waits until one of them may have something. False if the time passed.
    pub(crate) fn wait(&self, py: Python<'_>, timeout: Timeout) -> PyResult<bool> {
        let mut select = self.waiter.enter(py, self.what)?;
        let all = self.all();
        let listens = all.iter().any(|entry| entry.is_listener());
        let limit = if listens { Timeout(Some(timeout.limit().min(HANDSHAKE_INTERVAL))) } else { timeout };
        let ready = member::wait(py, &mut select, all.iter().map(|entry| &entry.member), limit)?;
        Ok(!ready.is_empty())
    }

    /// A descriptor that is readable while one of them may have something.
    pub(crate) fn fd(&self, py: Python<'_>) -> PyResult<RawFd> {
        if let Some(fd) = self.set.with(|set| set.as_ref().map(AsRawFd::as_raw_fd)) {
            return Ok(fd);
        }
        // SAFETY: makes a descriptor, or fails.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(os_error(py, "epoll_create1", std::io::Error::last_os_error()));
        }
        // SAFETY: made just now.
        let new = unsafe { OwnedFd::from_raw_fd(fd) };
        let (fd, second) = self.set.with(|set| match set {
            Some(set) => (set.as_raw_fd(), Some(new)),
            None => (set.insert(new).as_raw_fd(), None),
        });
        // Another thread has made one meanwhile.
        drop(second);
        for entry in self.all() {
            self.register(py, &entry)?;
        }
        Ok(fd)
    }

    /// A duplicate of what [`fd`](Self::fd) gives.
    pub(crate) fn duplicate(&self, py: Python<'_>) -> PyResult<OwnedFd> {
        self.fd(py)?;
        let duplicate = self.set.with(|set| set.as_ref().expect("made by `fd`").try_clone());
        duplicate.map_err(|e| os_error(py, errors::DUPLICATE, e))
    }

    fn register(&self, py: Python<'_>, entry: &Entry) -> PyResult<()> {
        if entry.registered.replace(true) {
            return Ok(());
        }
        let registered = self.register_first(py, entry);
        if registered.is_err() {
            entry.registered.set(false);
        }
        registered
    }

    fn register_first(&self, py: Python<'_>, entry: &Entry) -> PyResult<()> {
        let Some(own) = entry.duplicate(py)? else {
            entry.timed.set(true);
            return Ok(());
        };
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let added = self.set.with(|set| {
            let set = set.as_ref().map_or(-1, AsRawFd::as_raw_fd);
            // SAFETY: descriptors of ours, and an event that the call copies.
            unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, own.as_raw_fd(), &mut event) }
        });
        if added != 0 {
            return Err(os_error(py, "epoll_ctl", std::io::Error::last_os_error()));
        }
        entry.fd.set(Some(own));
        if let Member::Receiver(receiver) = &entry.member
            && let Ok(mut core) = receiver.get().enter(py)
        {
            // It is readable until an attempt has found nothing.
            let _ = core.raw_endpoint().ready(0);
        }
        Ok(())
    }

    /// Seconds after which a task that waits is to look again, whatever the descriptor says.
    pub(crate) fn poll_interval(&self) -> Option<f64> {
        let all = self.all();
        let intervals = all.iter().filter_map(|entry| match &entry.member {
            _ if entry.timed.get() => Some(TIMED_INTERVAL),
            Member::Receiver(receiver) => {
                (!receiver.get().held.with(|held| held.is_empty())).then_some(HOLDER_INTERVAL)
            }
            Member::Listener(_) | Member::Door(_) => Some(LISTENER_INTERVAL),
            _ => None,
        });
        intervals.reduce(f64::min)
    }

    /// Has the watch woken when one of them is closed.
    pub(crate) fn tell_of_close(&self, py: Python<'_>, watch: &Py<Watch>) {
        for entry in self.all() {
            if let Some(waits) = entry.waits() {
                waits.tell(watch.clone_ref(py));
            }
        }
    }

    /// Ends a wait: a thread's with `Interrupted`, a task's so that it looks again.
    pub(crate) fn wake(&self, py: Python<'_>) {
        self.waiter.wake();
        if let Some(watch) = self.waits.known(py) {
            Watch::wake(watch.bind(py));
        }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.waits.traverse(visit)?;
        self.list.with(|list| {
            for entry in list.iter() {
                visit.call(&entry.who)?;
                entry.member.traverse(visit)?;
            }
            Ok(())
        })
    }
}
