//! Many producers into one consumer.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Door, LastAsked, Options, peer_options};
use crate::ring::raw::WaitLimit;
use crate::select::Source;
use crate::sys::clock;
use crate::{Bus, Error, ErrorKind, Message, Receiver, Result, Select, SelectWaker};

/// Receives from any number of producers, each with a ring of its own: a slow consumer pushes back on each producer by itself,
/// and one that dies takes nothing of the others with it.
///
/// A producer is [`Bus::connect`](crate::Bus::connect) and its sender, in any language. Messages of one producer stay in
/// order; producers are served in turn, message by message. What is not received when the inbox goes is lost.
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// # let name = format!("/dev/shm/ramway-doc-inbox-{}.sock", std::process::id());
/// use ramway::{Bus, Inbox, Incoming};
///
/// let mut inbox = Inbox::bind(&name)?;
/// # let path = name.clone();
/// let producer = std::thread::spawn(move || -> ramway::Result<()> {
///     Bus::connect(&path)?.send(1, b"hello") // in another process, say
/// });
/// match inbox.recv()? {
///     Incoming::Message(peer, message) => assert_eq!((peer.id, &*message), (1, &b"hello"[..])),
///     Incoming::Left(..) => unreachable!("its message comes first"),
/// }
/// assert!(matches!(inbox.recv()?, Incoming::Left(peer, ramway::Left::Closed) if peer.id == 1));
/// # producer.join().unwrap()
/// # }
/// ```
#[derive(Debug)]
pub struct Inbox {
    /// `None` once closed.
    door: Option<Door>,
    producers: Vec<Producer>,
    /// Whose turn it is.
    next: usize,
    select: Select,
    lives_asked: LastAsked,
    /// Where it listened, for errors.
    path: PathBuf,
}

/// The other side of one bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Counts up from 1 with each that connects.
    pub id: u64,
    /// Its effective user.
    pub uid: u32,
    /// Its process, as the kernel said when it connected; `None` if it is in another process namespace.
    pub pid: Option<u32>,
}

/// What an inbox gives.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A message, and who sent it: a view of the shared memory, given back when dropped.
    Message(Peer, Message<'a>),
    /// A producer has gone, after its last message. Its place is free.
    Left(Peer, Left),
}

/// How a producer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It closed.
    Closed,
    /// Its process died.
    Died,
    /// It wrote what no correct producer writes; its other messages are not read.
    Corrupt,
}

#[derive(Debug)]
struct Producer {
    peer: Peer,
    bus: Bus,
}

impl Producer {
    fn receiver(&mut self) -> &mut Receiver {
        self.bus.receiver().expect("every bus of an inbox has this direction")
    }
}

/// Options of an [`Inbox`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing before bind"]
pub struct InboxBuilder {
    options: Options,
}

impl InboxBuilder {
    peer_options!("producer");

    /// Starts to listen for producers.
    ///
    /// # Errors
    /// As for [`ListenerBuilder::bind`](crate::ListenerBuilder::bind); `InvalidArgument` for at most 0 producers.
    pub fn bind(&self) -> Result<Inbox> {
        let mut select = Select::new();
        select.set_wait_policy(self.options.policy);
        let door = Door::new(self.options.bind(0, self.options.capacity)?);
        let path = door.listener.path().to_path_buf();
        Ok(Inbox { door: Some(door), producers: Vec::new(), next: 0, select, lives_asked: LastAsked::new(), path })
    }
}

impl Inbox {
    /// Listens at a name or path with the default options: 1 MiB for each producer, at most 128 of them.
    ///
    /// # Errors
    /// As for [`InboxBuilder::bind`].
    pub fn bind(name: impl AsRef<OsStr>) -> Result<Self> {
        Self::builder(name).bind()
    }

    /// Options for listening.
    pub fn builder(name: impl AsRef<OsStr>) -> InboxBuilder {
        InboxBuilder { options: Options::new(name.as_ref()) }
    }

    /// The next message or departure, waiting as long as it takes.
    ///
    /// # Errors
    /// `Closed` once the inbox was [closed](Self::close) and every producer has gone. `Interrupted` by a
    /// [waker](Self::waker). `NoSpace` or `Os` if a producer could not be taken for want of memory or descriptors: it was
    /// told, and the next call goes on. `Detached`.
    pub fn recv(&mut self) -> Result<Incoming<'_>> {
        self.next(None)
    }

    /// [`recv`](Self::recv) that does not wait: `Empty` if there is nothing now.
    pub fn try_recv(&mut self) -> Result<Incoming<'_>> {
        self.next(Some(Duration::ZERO)).map_err(|e| match e.kind() {
            ErrorKind::TimedOut => ErrorKind::Empty.into(),
            _ => e,
        })
    }

    /// [`recv`](Self::recv) that waits for at most `timeout`, then gives `TimedOut`.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Incoming<'_>> {
        self.next(Some(timeout))
    }

    /// Those that are connected.
    pub fn peers(&self) -> impl Iterator<Item = Peer> + '_ {
        self.producers.iter().map(|producer| producer.peer)
    }

    /// The socket's path, which producers can be given in place of the name; `None` once closed.
    pub fn path(&self) -> Option<&Path> {
        self.door.as_ref().map(|door| door.listener.path())
    }

    /// What ends a wait from another thread.
    pub fn waker(&self) -> SelectWaker {
        self.select.waker()
    }

    /// Takes no new producer, and tells those that are there that nothing more is wanted: their next send gives `Closed`. What
    /// they have sent before is still received, and each one's departure, until the last one gives `Closed`. A message that
    /// is sent while this runs may be lost.
    pub fn close(&mut self) {
        self.door = None;
        for producer in &mut self.producers {
            producer.receiver().half.close();
        }
    }

    /// Gives back the message that was given last, of which the caller forgot the [`Message`].
    #[doc(hidden)] // for the C ABI and the bindings; not part of the stable API
    #[inline]
    pub fn release(&mut self) {
        // Where it came from: the one before the next one. After a departure that one has nothing unreleased.
        if let Some(producer) = self.next.checked_sub(1).and_then(|last| self.producers.get_mut(last)) {
            producer.receiver().half.hot.release();
        }
    }

    fn next(&mut self, timeout: Option<Duration>) -> Result<Incoming<'_>> {
        let now = clock::coarse_ns();
        if self.door.as_ref().is_some_and(|door| door.is_due(now)) {
            self.take_new()?;
        }
        if self.lives_asked.is_due(now) {
            if let Some(found) = self.find_dead()? {
                return self.give(found);
            }
            // Only now: several that died together are reported one after another.
            self.lives_asked.asked(now);
        }
        if let Some(index) = self.find_message() {
            return self.give(Found::Message(index));
        }
        let deadline = timeout.map(|timeout| Instant::now().checked_add(timeout));
        loop {
            if let Some(found) = self.find()? {
                return self.give(found);
            }
            if self.door.is_none() && self.producers.is_empty() {
                let text = format!("the inbox '{}' was closed, and every producer has gone", self.path.display());
                return Err(Error::new(ErrorKind::Closed, text));
            }
            let left = deadline.map(|at| at.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now())));
            let ready = self.sleep(left)?;
            // Also where it was not the listener: a handshake's time may be over.
            self.take_new()?;
            for index in ready {
                if let Some(found) = self.check(index, true)? {
                    return self.give(found);
                }
            }
            if left.is_some_and(|left| left.is_zero()) {
                return match self.find()? {
                    Some(found) => self.give(found),
                    None => Err(ErrorKind::TimedOut.into()),
                };
            }
        }
    }

    #[inline]
    fn give(&mut self, found: Found) -> Result<Incoming<'_>> {
        match found {
            Found::Message(index) => {
                self.next = index + 1;
                match self.producers[index].receiver().half.recv(WaitLimit::None) {
                    Ok(frame) => {
                        let Producer { peer, bus } = &mut self.producers[index];
                        Ok(Incoming::Message(*peer, Message { frame, hot: &mut bus.receiver()?.half.hot }))
                    }
                    // That there is more than before was plausible, and what is there is not.
                    Err(e) if e.kind() == ErrorKind::Corrupt => Ok(self.let_go(index, Left::Corrupt)),
                    Err(e) => Err(e),
                }
            }
            Found::Left(index, how) => Ok(self.let_go(index, how)),
        }
    }

    #[cold]
    fn let_go(&mut self, index: usize, how: Left) -> Incoming<'static> {
        let producer = self.producers.remove(index);
        self.next = index;
        Incoming::Left(producer.peer, how)
    }

    /// The next producer with something to give, if that is a message: what [`find`](Self::find) would find. An index alone,
    /// because the way of a larger answer through memory costs more than all the rest of a message.
    #[inline]
    fn find_message(&mut self) -> Option<usize> {
        let count = self.producers.len();
        let mut index = self.next;
        for _ in 0..count {
            if index >= count {
                index = 0;
            }
            let half = &mut self.producers[index].receiver().half;
            // Of a message that was forgotten: its borrow has ended all the same.
            half.hot.release();
            match half.hot.has_frame() {
                Ok(true) => return Some(index),
                Ok(false) if !half.has_ended(false) => index += 1,
                _ => return None,
            }
        }
        None
    }

    /// The next producer with something to give, from the one whose turn it is.
    fn find(&mut self) -> Result<Option<Found>> {
        let count = self.producers.len();
        for step in 0..count {
            if let Some(found) = self.check((self.next + step) % count, false)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// A producer that died, or wrote what no correct one writes, and has no message left. The kernel is asked about each one.
    #[cold]
    fn find_dead(&mut self) -> Result<Option<Found>> {
        for index in 0..self.producers.len() {
            if let Some(found @ Found::Left(..)) = self.check(index, true)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// What a producer has to give. The kernel is asked whether it lives only if `ask_kernel`.
    fn check(&mut self, index: usize, ask_kernel: bool) -> Result<Option<Found>> {
        let half = &mut self.producers[index].receiver().half;
        // Of a message that was forgotten: its borrow has ended all the same.
        half.hot.release();
        let mut has_message = || match half.hot.has_frame() {
            Ok(yes) => Ok(yes.then_some(Found::Message(index))),
            Err(ErrorKind::Detached) => Err(Error::from(ErrorKind::Detached)),
            Err(_) => Ok(Some(Found::Left(index, Left::Corrupt))),
        };
        if let Some(found) = has_message()? {
            return Ok(Some(found));
        }
        if !half.has_ended(ask_kernel) {
            return Ok(None);
        }
        // Again: what was sent before the end is given before it.
        let mut has_message = || match half.hot.has_frame() {
            Ok(true) => Some(Found::Message(index)),
            Ok(false) => None,
            Err(_) => Some(Found::Left(index, Left::Corrupt)),
        };
        if let Some(found) = has_message() {
            return Ok(Some(found));
        }
        let how = match self.producers[index].receiver().try_recv().map(drop).map_err(|e| e.kind()) {
            Err(ErrorKind::PeerDead) => Left::Died,
            Err(ErrorKind::Corrupt) => Left::Corrupt,
            // On a bus an end is final, so nothing has come since.
            Err(_) | Ok(()) => Left::Closed,
        };
        Ok(Some(Found::Left(index, how)))
    }

    fn take_new(&mut self) -> Result<()> {
        while let Some(door) = &mut self.door
            && let Some((peer, bus)) = door.take()?
        {
            self.producers.push(Producer { peer, bus });
        }
        Ok(())
    }

    /// Waits until a producer or the listener is ready, for at most `left`. Gives the producers that are.
    fn sleep(&mut self, left: Option<Duration>) -> Result<Vec<usize>> {
        let Self { door, producers, select, .. } = self;
        let due = door.as_ref().and_then(Door::due_in);
        let timeout = match (left, due) {
            (Some(left), Some(due)) => Some(left.min(due)),
            (left, due) => left.or(due),
        };
        let count = producers.len();
        let mut sources: Vec<&mut dyn Source> = Vec::with_capacity(count + 1);
        for producer in producers.iter_mut() {
            sources.push(producer.bus.receiver()?);
        }
        if let Some(door) = door {
            sources.push(&mut door.listener);
        }
        Ok(select.wait(&mut sources, timeout)?.iter().copied().filter(|index| *index < count).collect())
    }
}

/// What a check of the producers came to.
enum Found {
    Message(usize),
    Left(usize, Left),
}
