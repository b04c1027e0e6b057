//! One producer, many workers.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Door, LastAsked, Options, Peer, peer_options};
use crate::layout::{TYPE_ID_RESERVED, max_message_len};
use crate::ring::log::{Ring, Shape};
use crate::ring::producer::Writing;
use crate::segment::round_capacity;
use crate::select::{Released, Source};
use crate::sys::clock;
use crate::sys::mem::page_size;
use crate::{Bus, Error, ErrorKind, Result, Select, SelectWaker, Sender};

/// Gives each message to one of any number of workers that compete for them: to one that waits for work, else to the one
/// with the fewest messages that it has not given back.
///
/// A worker is [`Bus::connect`](crate::Bus::connect) and its receiver, in any language: it has done a message's work when it
/// gives the message back. What a worker that closes or dies has not given back goes to another one: at least once. After
/// [`max_deliveries`](OutboxBuilder::max_deliveries) a message is [taken out](Self::take_undelivered).
///
/// An outbox keeps where the messages lie that are not given back, and how long they are, in its own memory: a worker can
/// change only the bytes of what it was given itself. With [`copies`](OutboxBuilder::copies) it keeps those too.
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// # let name = format!("/dev/shm/ramway-doc-outbox-{}.sock", std::process::id());
/// let mut outbox = ramway::Outbox::bind(&name)?;
/// # let path = name.clone();
/// let worker = std::thread::spawn(move || -> ramway::Result<()> {
///     let mut work = ramway::Bus::connect(&path)?; // in another process, say
///     for _ in 0..2 {
///         let task = work.recv()?;
///         assert_eq!(&*task, b"a task");
///     }
///     Ok(())
/// });
/// outbox.send(1, b"a task")?;
/// outbox.send(1, b"a task")?;
/// outbox.drain(None)?;
/// # worker.join().unwrap()
/// # }
/// ```
#[derive(Debug)]
pub struct Outbox {
    door: Door,
    workers: Vec<Worker>,
    /// What has to be given to somebody again, the oldest first.
    again: VecDeque<Task>,
    undelivered: VecDeque<Undelivered>,
    select: Select,
    prefetch: usize,
    max_deliveries: u32,
    copies: bool,
    lives_asked: LastAsked,
    /// Bytes of the longest message that ever fits, whichever worker comes.
    longest: u64,
}

#[derive(Debug)]
struct Worker {
    peer: Peer,
    bus: Bus,
    /// What it has not given back, the oldest first.
    given: VecDeque<Given>,
}

/// A message that a worker has, and that is not given back.
#[derive(Debug)]
struct Given {
    /// Where its frame begins and ends.
    start: u64,
    end: u64,
    len: usize,
    type_id: u32,
    tag: u64,
    /// How often it was given to somebody, this time included.
    deliveries: u32,
    /// Its bytes, where copies are kept.
    bytes: Option<Box<[u8]>>,
}

/// A message that is given to nobody at this moment.
#[derive(Debug)]
struct Task {
    type_id: u32,
    tag: u64,
    deliveries: u32,
    bytes: Vec<u8>,
}

/// A message that no worker has given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// As it was sent with.
    pub type_id: u32,
    /// As it was sent with.
    pub tag: u64,
    /// To how many workers it was given.
    pub deliveries: u32,
    /// The payload.
    pub data: Vec<u8>,
}

/// Options of an [`Outbox`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing before bind"]
pub struct OutboxBuilder {
    options: Options,
    prefetch: usize,
    max_deliveries: u32,
    copies: bool,
}

impl OutboxBuilder {
    peer_options!("worker");

    /// How many messages a worker may have at a time; default 1. With more it need not wait for the next one, and another
    /// that is free may wait meanwhile.
    pub fn prefetch(mut self, messages: usize) -> Self {
        self.prefetch = messages;
        self
    }

    /// To how many workers a message is given before it is [taken out](Outbox::take_undelivered); default 3.
    pub fn max_deliveries(mut self, count: u32) -> Self {
        self.max_deliveries = count;
        self
    }

    /// Keeps a copy of each message until it is given back, so that a worker that writes into what it was given cannot change
    /// what another one gets: prefetch × size bytes for each worker. Default: no.
    pub fn copies(mut self, yes: bool) -> Self {
        self.copies = yes;
        self
    }

    /// Starts to listen for workers.
    ///
    /// # Errors
    /// As for [`ListenerBuilder::bind`](crate::ListenerBuilder::bind); `InvalidArgument` for at most 0 workers, messages or
    /// deliveries.
    pub fn bind(&self) -> Result<Outbox> {
        let Self { prefetch, max_deliveries, copies, .. } = *self;
        if prefetch == 0 || max_deliveries == 0 {
            let text = format!(
                "listening at '{}': a prefetch or max_deliveries of 0: no worker would ever get a message; expected at least 1",
                self.options.name.to_string_lossy()
            );
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        let mut select = Select::new();
        select.set_wait_policy(self.options.policy);
        Ok(Outbox {
            door: Door::new(self.options.bind(self.options.capacity, 0)?),
            workers: Vec::new(),
            again: VecDeque::new(),
            undelivered: VecDeque::new(),
            select,
            prefetch,
            max_deliveries,
            copies,
            lives_asked: LastAsked::new(),
            longest: max_message_len(round_capacity(self.options.capacity, page_size())?),
        })
    }
}

impl Worker {
    fn sender(&mut self) -> &mut Sender {
        self.bus.sender().expect("every bus of an outbox has this direction")
    }

    /// Whether it sleeps until there is work.
    fn waits(&self) -> bool {
        self.bus.sends().is_some_and(|sender| sender.half.endpoint.peer_waits())
    }

    /// Whether it may have a message of `len` bytes besides the `prefetch` at most that it has. Its ring may be full before
    /// that. One that has ended is told by the attempt.
    fn takes(&mut self, len: usize, prefetch: usize) -> bool {
        // An empty ring has room for every message that is not too large.
        self.given.is_empty()
            || self.given.len() < prefetch
                && !matches!(self.sender().half.hot.try_reserve(len as u64), Err(ErrorKind::Full))
    }

    /// Forgets what it has given back. An error is how it ended; what it gave back before its end was given back.
    fn settle(&mut self, ask_kernel: bool) -> Result<(), ErrorKind> {
        self.forget_given_back()?;
        let half = &mut self.sender().half;
        // Acts on what it says of itself.
        let dead = match half.hot.try_reserve(0) {
            Ok(_) | Err(ErrorKind::Full) => None,
            Err(kind) => Some(kind),
        };
        if dead.is_none() && !half.has_ended(ask_kernel) {
            return Ok(());
        }
        self.forget_given_back()?;
        Err(dead.unwrap_or(ErrorKind::PeerDead))
    }

    fn forget_given_back(&mut self) -> Result<(), ErrorKind> {
        let hot = &mut self.sender().half.hot;
        // Room for nothing: it loads how far the worker has given back, and checks that.
        <Ring as Writing>::fits_after_refresh(hot, 0)?;
        let released = hot.head;
        while self.given.front().is_some_and(|given| released.wrapping_sub(given.end) >> 63 == 0) {
            self.given.pop_front();
        }
        Ok(())
    }

    /// What it had not given back: read from the memory that it shares, or from the copies.
    fn tasks(&mut self) -> Vec<Task> {
        let hot = &self.sender().half.hot;
        let (data, mask) = (hot.data, hot.capacity - 1);
        let task = |given: Given| {
            let Given { start, len, type_id, tag, deliveries, bytes, .. } = given;
            let bytes = bytes.map_or_else(
                || {
                    let mut copy = Vec::with_capacity(len);
                    // SAFETY: this side wrote `len` bytes there, nobody has overwritten them since, and the mapping is this
                    // side's own. The worker may write them meanwhile: a mix of bytes, as what it was given.
                    unsafe {
                        let from = data.add((start & mask) as usize + Ring::HEADER as usize);
                        std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), len);
                        copy.set_len(len);
                    }
                    copy
                },
                Vec::from,
            );
            Task { type_id, tag, deliveries, bytes }
        };
        std::mem::take(&mut self.given).into_iter().map(task).collect()
    }
}

impl Outbox {
    /// Listens at a name or path with the default options: 1 MiB and one message at a time for each worker, at most 128 of
    /// them.
    ///
    /// # Errors
    /// As for [`OutboxBuilder::bind`].
    pub fn bind(name: impl AsRef<OsStr>) -> Result<Self> {
        Self::builder(name).bind()
    }

    /// Options for listening.
    pub fn builder(name: impl AsRef<OsStr>) -> OutboxBuilder {
        let options = Options::new(name.as_ref());
        OutboxBuilder { options, prefetch: 1, max_deliveries: 3, copies: false }
    }

    /// Gives a message to a worker, waiting for one that may have another message as long as it takes. Messages that have to
    /// be given again go first.
    ///
    /// # Errors
    /// `TooLarge` if it can never fit, `InvalidArgument` for a reserved `type_id`, `Interrupted` by a [waker](Self::waker),
    /// `NoSpace` or `Os` if a worker could not be taken for want of memory or descriptors. Nothing of this message was given
    /// then.
    pub fn send(&mut self, type_id: u32, payload: &[u8]) -> Result<()> {
        self.give(type_id, 0, payload, None)
    }

    /// [`send`](Self::send) with a tag.
    pub fn send_tagged(&mut self, type_id: u32, tag: u64, payload: &[u8]) -> Result<()> {
        self.give(type_id, tag, payload, None)
    }

    /// [`send_tagged`](Self::send_tagged) that does not wait: `Full` if no worker may have another message now.
    pub fn try_send_tagged(&mut self, type_id: u32, tag: u64, payload: &[u8]) -> Result<()> {
        self.give(type_id, tag, payload, Some(Duration::ZERO)).map_err(|e| match e.kind() {
            ErrorKind::TimedOut => ErrorKind::Full.into(),
            _ => e,
        })
    }

    /// [`send_tagged`](Self::send_tagged) that waits for at most `timeout`, then gives `TimedOut`.
    pub fn send_timeout(&mut self, type_id: u32, tag: u64, payload: &[u8], timeout: Duration) -> Result<()> {
        self.give(type_id, tag, payload, Some(timeout))
    }

    /// Waits until every message was given back or taken out, for at most `timeout` (`None`: as long as it takes), then gives
    /// `TimedOut`. Deaths are seen, and messages given again, inside the calls of an outbox only.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn drain(&mut self, timeout: Option<Duration>) -> Result<()> {
        let deadline = timeout.map(|timeout| Instant::now().checked_add(timeout));
        loop {
            self.step(None)?;
            if self.again.is_empty() && self.workers.iter().all(|worker| worker.given.is_empty()) {
                return Ok(());
            }
            self.sleep(deadline)?;
        }
    }

    /// A message that no worker has given back, and that is given to nobody any more: the oldest one.
    pub fn take_undelivered(&mut self) -> Option<Undelivered> {
        self.undelivered.pop_front()
    }

    /// How many messages are given to somebody and not given back, or wait to be given again.
    pub fn outstanding(&self) -> usize {
        self.again.len() + self.workers.iter().map(|worker| worker.given.len()).sum::<usize>()
    }

    /// Those that are connected, and how many messages each has.
    pub fn workers(&self) -> impl Iterator<Item = (Peer, usize)> + '_ {
        self.workers.iter().map(|worker| (worker.peer, worker.given.len()))
    }

    /// The socket's path, which workers can be given in place of the name.
    pub fn path(&self) -> &Path {
        self.door.listener.path()
    }

    /// What ends a wait from another thread.
    pub fn waker(&self) -> SelectWaker {
        self.select.waker()
    }

    fn give(&mut self, type_id: u32, tag: u64, payload: &[u8], timeout: Option<Duration>) -> Result<()> {
        if type_id >= TYPE_ID_RESERVED {
            let text =
                format!("type id {type_id:#x} is Ramway's own: applications use ids below {TYPE_ID_RESERVED:#x}");
            let error = Error::new(ErrorKind::InvalidArgument, text);
            return Err(error.context(format_args!("the outbox '{}'", self.path().display())));
        }
        if payload.len() as u64 > self.longest {
            // Also where no worker is there yet, who would be waited for in vain.
            let text = format!(
                "the outbox '{}': a message of {} bytes can never fit: a worker's ring takes at most {}; bind it with a \
                 larger capacity or cut the message",
                self.path().display(),
                payload.len(),
                self.longest
            );
            return Err(Error::new(ErrorKind::TooLarge, text));
        }
        let mut deadline = None;
        loop {
            self.step(None)?;
            if self.again.is_empty()
                && let Some(index) = self.free_worker(payload.len())
            {
                if self.give_to(index, type_id, tag, 1, payload)? {
                    return Ok(());
                }
                // What that worker had goes first.
                continue;
            }
            let deadline = *deadline.get_or_insert_with(|| timeout.map(|timeout| Instant::now().checked_add(timeout)));
            self.sleep(deadline)?;
        }
    }

    /// Takes new workers, forgets what was given back and those that have gone, and gives again what has to be.
    fn step(&mut self, ended: Option<&[usize]>) -> Result<()> {
        let now = clock::coarse_ns();
        if self.door.is_due(now) || self.workers.is_empty() || ended.is_some() {
            while let Some((peer, bus)) = self.door.take()? {
                self.workers.push(Worker { peer, bus, given: VecDeque::new() });
            }
        }
        let ask_all = self.lives_asked.is_due(now);
        if ask_all {
            self.lives_asked.asked(now);
        }
        let mut index = 0;
        let mut at = 0;
        while index < self.workers.len() {
            let ask_kernel = ask_all || ended.is_some_and(|ended| ended.contains(&at));
            at += 1;
            match self.workers[index].settle(ask_kernel) {
                Ok(()) => index += 1,
                Err(ErrorKind::Detached) => return Err(ErrorKind::Detached.into()),
                Err(_) => self.remove(index),
            }
        }
        while let Some(task) = self.again.pop_front() {
            let Task { type_id, tag, deliveries, bytes } = &task;
            let given = match self.free_worker(bytes.len()) {
                Some(index) => self.give_to(index, *type_id, *tag, deliveries + 1, bytes),
                None => {
                    self.again.push_front(task);
                    break;
                }
            };
            if !matches!(given, Ok(true)) {
                self.again.push_front(task);
            }
            given?;
        }
        Ok(())
    }

    /// A worker has gone: what it had is to be given again.
    fn remove(&mut self, index: usize) {
        let mut worker = self.workers.remove(index);
        for task in worker.tasks() {
            self.again_or_undelivered(task);
        }
    }

    fn again_or_undelivered(&mut self, task: Task) {
        let Task { type_id, tag, deliveries, bytes } = task;
        if deliveries >= self.max_deliveries {
            self.undelivered.push_back(Undelivered { type_id, tag, deliveries, data: bytes });
        } else {
            self.again.push_back(Task { type_id, tag, deliveries, bytes });
        }
    }

    /// One that waits for work, else the one with the fewest messages, of those that may have another of `len` bytes.
    fn free_worker(&mut self, len: usize) -> Option<usize> {
        let prefetch = self.prefetch;
        let free = self.workers.iter_mut().enumerate().filter_map(|(index, worker)| {
            worker.takes(len, prefetch).then(|| (worker.given.len(), !worker.waits(), index))
        });
        free.min().map(|(_, _, index)| index)
    }

    /// Gives a message to a worker that takes one of this length. `false`: it has gone meanwhile, and is removed.
    fn give_to(&mut self, index: usize, type_id: u32, tag: u64, deliveries: u32, payload: &[u8]) -> Result<bool> {
        let bytes = self.copies.then(|| payload.into());
        let worker = &mut self.workers[index];
        let sender = worker.sender();
        let start = sender.half.hot.tail;
        match sender.try_send_tagged(type_id, tag, payload) {
            Ok(()) => {}
            Err(e) if matches!(e.kind(), ErrorKind::Closed | ErrorKind::PeerDead | ErrorKind::Corrupt) => {
                // What it gave back before its end is done.
                let _ = worker.forget_given_back();
                self.remove(index);
                return Ok(false);
            }
            Err(e) => return Err(e),
        }
        let end = sender.half.hot.tail;
        worker.given.push_back(Given { start, end, len: payload.len(), type_id, tag, deliveries, bytes });
        Ok(true)
    }

    /// Waits until a worker has given something back, one has come or one has gone.
    fn sleep(&mut self, deadline: Option<Option<Instant>>) -> Result<()> {
        let left = deadline.map(|at| at.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now())));
        let timeout = match (left, self.door.due_in()) {
            (Some(left), Some(due)) => Some(left.min(due)),
            (left, due) => left.or(due),
        };
        let Self { door, workers, select, .. } = self;
        let mut sources: Vec<Box<dyn Source + '_>> = Vec::with_capacity(workers.len());
        for worker in workers.iter_mut() {
            let released = worker.given.front().map(|given| given.end);
            let is_part = worker.given.len() > 1;
            sources.push(Box::new(Released { sender: worker.bus.sender()?, until: released, is_part }));
        }
        let mut all: Vec<&mut dyn Source> = sources.iter_mut().map(|source| &mut **source as &mut dyn Source).collect();
        all.push(&mut door.listener);
        let ready = select.wait(&mut all, timeout)?.to_vec();
        drop(all);
        drop(sources);
        self.step(Some(&ready))?;
        if ready.is_empty() && left.is_some_and(|left| left.is_zero()) {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}
