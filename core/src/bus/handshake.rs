//! How two strangers agree on a bus: three messages over a Unix stream socket, then silence until one hangs up.
//!
//! Every message has 64 bytes, little-endian, in every version; docs/ABI.md, section 12, has its fields.
//!
//! The order, C being the connector and L the listener:
//!
//! 1. Each side checks the other's user by `SO_PEERCRED`. L answers a user that it does not serve with
//!    REFUSE(`PermissionDenied`) at once.
//! 2. C sends HELLO, no descriptor. L answers REFUSE(`AbiMismatch`) to what it does not understand,
//!    REFUSE(`Corrupt`) to a message of another type or one with a descriptor, REFUSE(`TimedOut`) if 64 bytes are
//!    not there within its handshake deadline (1 s unless configured), and closes.
//! 3. L makes the memory, a bus segment in a memfd sealed against shrinking, growing and further seals, and sends
//!    WELCOME with exactly this one descriptor (`SCM_RIGHTS`, on the message's first byte). If it cannot, it sends
//!    REFUSE with the reason: `NoSpace` (also for a lack of descriptors), `Os`, and so on.
//! 4. C checks, before it maps: one descriptor, its seals, its size against WELCOME's and the header's, the header,
//!    the geometry of both rings. It sends ACK with 0, or with the number of what it found, and then closes.
//! 5. L takes ACK(0) as the bus's beginning. Anything else, or nothing within its deadline, ends the attempt. Both
//!    sides keep the socket open and send nothing more: its hang-up is the notice that the peer closed or died.
//!
//! A status is a number of `ErrorKind`; one that the reader does not know is reported as `Os`. A hang-up before the
//! first byte of L's answer means that L ended before it served C, and C may try again; one in the middle of a message is
//! `PeerDead`. Bytes after ACK are never read.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::io::Errno;

use crate::facts::{
    BYTE_ORDER, HANDSHAKE_FEATURES, HANDSHAKE_MAGIC, HANDSHAKE_MAJOR, HANDSHAKE_MINOR, HANDSHAKE_OFF_BYTE_ORDER,
    HANDSHAKE_OFF_FEATURES_REQUIRED, HANDSHAKE_OFF_MAGIC, HANDSHAKE_OFF_MAJOR, HANDSHAKE_OFF_MAX_IN_FLIGHT,
    HANDSHAKE_OFF_MINOR, HANDSHAKE_OFF_SIZE, HANDSHAKE_OFF_STATUS, HANDSHAKE_OFF_TYPE, HANDSHAKE_SIZE,
    HandshakeType as Type, RPC_FEATURES,
};
use crate::sys::socket;
use crate::wait::POLL_INTERVAL;
use crate::{Error, ErrorKind, Result};

/// What differs from one message to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    status: u32,
    /// Of HELLO and WELCOME; else 0.
    features: u32,
    size: u64,
    /// Of WELCOME on an RPC's bus; else 0.
    max_in_flight: u32,
}

impl Message {
    const EMPTY: Self = Self { status: 0, features: 0, size: 0, max_in_flight: 0 };

    fn status(status: u32) -> Self {
        Self { status, ..Self::EMPTY }
    }
}

fn encode(kind: Type, message: Message) -> [u8; HANDSHAKE_SIZE] {
    let mut bytes = [0; HANDSHAKE_SIZE];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(HANDSHAKE_OFF_MAGIC, &HANDSHAKE_MAGIC);
    put(HANDSHAKE_OFF_BYTE_ORDER, &BYTE_ORDER.to_le_bytes());
    put(HANDSHAKE_OFF_MAJOR, &HANDSHAKE_MAJOR.to_le_bytes());
    put(HANDSHAKE_OFF_MINOR, &HANDSHAKE_MINOR.to_le_bytes());
    put(HANDSHAKE_OFF_TYPE, &(kind as u32).to_le_bytes());
    put(HANDSHAKE_OFF_STATUS, &message.status.to_le_bytes());
    put(HANDSHAKE_OFF_FEATURES_REQUIRED, &message.features.to_le_bytes());
    put(HANDSHAKE_OFF_SIZE, &message.size.to_le_bytes());
    put(HANDSHAKE_OFF_MAX_IN_FLIGHT, &message.max_in_flight.to_le_bytes());
    bytes
}

/// Reads a message that must be of this type and require exactly these features. A REFUSE in its place is the error that it
/// carries, whatever its version: the fields up to the status stay where they are forever.
fn decode(bytes: &[u8; HANDSHAKE_SIZE], expected: Type, features: u32) -> Result<Message> {
    let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
    let mismatch = |text: String| Err(Error::new(ErrorKind::AbiMismatch, text));
    if bytes[..8] != HANDSHAKE_MAGIC {
        return mismatch("the other side does not speak Ramway's bus handshake".to_owned());
    }
    if u32_at(HANDSHAKE_OFF_BYTE_ORDER) != BYTE_ORDER {
        return mismatch("the other side has another byte order".to_owned());
    }
    let (major, kind, status) = (u16_at(HANDSHAKE_OFF_MAJOR), u32_at(HANDSHAKE_OFF_TYPE), u32_at(HANDSHAKE_OFF_STATUS));
    if kind == Type::Refuse as u32 && expected == Type::Welcome {
        let error = from_status(status, "the listener refused");
        if error.kind() != ErrorKind::AbiMismatch {
            return Err(error);
        }
        let (its, ours) =
            if features == RPC_FEATURES { ("a plain bus's", "an RPC client") } else { ("an RPC's", "a plain bus") };
        let text = format!(
            "the listener refused (AbiMismatch): it is {its}, and this side is {ours}; or its version is another"
        );
        return Err(Error::new(ErrorKind::AbiMismatch, text));
    }
    if major != HANDSHAKE_MAJOR {
        return mismatch(format!("the other side speaks version {major} of the handshake, this one {HANDSHAKE_MAJOR}"));
    }
    let required = u32_at(HANDSHAKE_OFF_FEATURES_REQUIRED);
    let unknown = required & !features;
    if unknown == RPC_FEATURES {
        return mismatch("the other side speaks RPC, this side is a plain bus".to_owned());
    }
    if unknown != 0 {
        return mismatch(format!("the other side requires features {unknown:#x}, which this version lacks"));
    }
    if required != features {
        return mismatch("the other side is a plain bus, this side speaks RPC".to_owned());
    }
    if kind != expected as u32 {
        let text = format!("the other side sent a message of type {kind}, expected {}", expected.name());
        return Err(Error::new(ErrorKind::Corrupt, text));
    }
    let (low, high) = (u32_at(HANDSHAKE_OFF_SIZE), u32_at(HANDSHAKE_OFF_SIZE + 4));
    let size = u64::from(low) | u64::from(high) << 32;
    Ok(Message { status, features: required, size, max_in_flight: u32_at(HANDSHAKE_OFF_MAX_IN_FLIGHT) })
}

fn from_status(status: u32, who: &str) -> Error {
    match i32::try_from(status).ok().and_then(ErrorKind::from_code) {
        Some(ErrorKind::NoSpace) => {
            Error::new(ErrorKind::NoSpace, format!("{who}: it has no memory or no descriptors left (NoSpace)"))
        }
        Some(kind) => Error::new(kind, format!("{who}: {} ({})", kind, kind.name())),
        None => Error::new(ErrorKind::Os, format!("{who} with the unknown error number {status}")),
    }
}

/// How far a message has arrived.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Whole,
    Partial,
    HungUp,
}

/// A message that arrives in pieces, and the descriptors that came with it.
struct Inbox {
    bytes: [u8; HANDSHAKE_SIZE],
    filled: usize,
    descriptor: Option<OwnedFd>,
    /// How many descriptors came in all; those beyond the first are closed on arrival.
    descriptors: usize,
}

impl Inbox {
    fn new() -> Self {
        Self { bytes: [0; HANDSHAKE_SIZE], filled: 0, descriptor: None, descriptors: 0 }
    }

    /// Takes what is there without waiting, and not one byte beyond the message.
    fn fill(&mut self, socket: BorrowedFd<'_>) -> Result<Progress> {
        while self.filled < HANDSHAKE_SIZE {
            match socket::receive(socket, &mut self.bytes[self.filled..]) {
                Ok(None) => return Ok(Progress::Partial),
                Ok(Some(received)) => {
                    // Counted even with no byte: an end of stream carries none, so there is nothing to lose.
                    self.descriptors += received.descriptors.len() + usize::from(received.truncated);
                    let mut descriptors = received.descriptors.into_iter();
                    if self.descriptor.is_none() {
                        self.descriptor = descriptors.next();
                    }
                    drop(descriptors);
                    if received.bytes == 0 {
                        return Ok(Progress::HungUp);
                    }
                    self.filled += received.bytes;
                }
                Err(Errno::CONNRESET | Errno::PIPE) => return Ok(Progress::HungUp),
                Err(e) => return Err(Error::os(e.raw_os_error(), "receiving the bus handshake")),
            }
        }
        Ok(Progress::Whole)
    }

    /// The message, if it came with exactly `descriptors` descriptors.
    fn message(&mut self, expected: Type, features: u32, descriptors: usize) -> Result<(Message, Option<OwnedFd>)> {
        let message = decode(&self.bytes, expected, features)?;
        if self.descriptors != descriptors {
            let text = format!(
                "{} came with {} descriptors, expected {descriptors}; they are closed",
                expected.name(),
                self.descriptors
            );
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        Ok((message, self.descriptor.take()))
    }

    fn hung_up(&self, expected: Type) -> Error {
        let text = format!(
            "the other side hung up after {} of the {HANDSHAKE_SIZE} bytes of {}",
            self.filled,
            expected.name()
        );
        Error::new(ErrorKind::PeerDead, text)
    }

    fn silent(&self, expected: Type) -> Error {
        let text = format!(
            "only {} of the {HANDSHAKE_SIZE} bytes of {} came before the deadline",
            self.filled,
            expected.name()
        );
        Error::new(ErrorKind::TimedOut, text)
    }
}

/// Sends a message; an error only says that the other side is gone or does not read.
fn send(socket: BorrowedFd<'_>, kind: Type, message: Message, descriptor: Option<BorrowedFd<'_>>) -> Result<()> {
    socket::send(socket, &encode(kind, message), descriptor).map_err(|e| match e {
        Errno::PIPE | Errno::CONNRESET => {
            Error::new(ErrorKind::PeerDead, format!("the other side hung up before {}", kind.name()))
        }
        e => Error::os(e.raw_os_error(), format_args!("sending {}", kind.name())),
    })
}

/// Tells a connector why it is not served. It may be gone, which changes nothing.
pub(crate) fn refuse(socket: BorrowedFd<'_>, reason: &Error) {
    // A connector cannot do anything about our limits, whichever it is.
    let kind = if socket::is_shortage(reason) { ErrorKind::NoSpace } else { reason.kind() };
    let _ = send(socket, Type::Refuse, Message::status(kind.code() as u32), None);
}

/// A message that the listener waits for: HELLO, or after [`welcome`] ACK. It never blocks: it takes what has come, when it
/// is asked to.
pub(crate) struct Incoming {
    inbox: Inbox,
    expected: Type,
    /// What it has to require.
    features: u32,
}

impl Incoming {
    /// HELLO is due, which requires exactly these features.
    pub(crate) fn hello(features: u32) -> Self {
        Self { inbox: Inbox::new(), expected: Type::Hello, features }
    }

    /// Whether the message is here, an ACK with success; `Ok(false)`: not all of it yet. After an error the connector has
    /// been told, and only closing is left.
    pub(crate) fn take(&mut self, socket: BorrowedFd<'_>) -> Result<bool> {
        self.receive(socket).inspect_err(|error| self.tell(socket, error))
    }

    fn receive(&mut self, socket: BorrowedFd<'_>) -> Result<bool> {
        match self.inbox.fill(socket)? {
            Progress::Partial => return Ok(false),
            Progress::HungUp => return Err(self.inbox.hung_up(self.expected)),
            Progress::Whole => {}
        }
        let (message, _) = self.inbox.message(self.expected, self.features, 0)?;
        match self.expected {
            Type::Ack if message.status != 0 => Err(from_status(message.status, "the connector cannot use the memory")),
            _ => Ok(true),
        }
    }

    /// Tells the connector that its time is up, and says what was missing.
    pub(crate) fn expire(&self, socket: BorrowedFd<'_>) -> Error {
        let error = self.inbox.silent(self.expected);
        self.tell(socket, &error);
        error
    }

    /// A connector that has its WELCOME expects no answer any more.
    fn tell(&self, socket: BorrowedFd<'_>, error: &Error) {
        if self.expected == Type::Hello {
            refuse(socket, error);
        }
    }
}

/// What both sides of a bus have to require, in HELLO, in WELCOME and in the memory: an RPC's bus has a limit of calls in flight.
pub(crate) fn features(max_in_flight: Option<u32>) -> u32 {
    if max_in_flight.is_some() { RPC_FEATURES } else { HANDSHAKE_FEATURES }
}

/// The answer to HELLO: sends the memory. The connector's ACK is due next. `max_in_flight` is of an RPC's bus.
pub(crate) fn welcome(
    socket: BorrowedFd<'_>,
    memory: BorrowedFd<'_>,
    size: u64,
    max_in_flight: Option<u32>,
) -> Result<Incoming> {
    let message = Message {
        features: features(max_in_flight),
        size,
        max_in_flight: max_in_flight.unwrap_or_default(),
        ..Message::EMPTY
    };
    send(socket, Type::Welcome, message, Some(memory))?;
    Ok(Incoming { inbox: Inbox::new(), expected: Type::Ack, features: HANDSHAKE_FEATURES })
}

/// What WELCOME brings.
pub(crate) struct Offer {
    /// The memory, unchecked.
    pub(crate) memory: OwnedFd,
    /// The size that it is said to have.
    pub(crate) size: u64,
    /// Of an RPC's bus: how many calls may be in flight, at least 1.
    pub(crate) max_in_flight: u32,
}

/// What the connector got for its HELLO.
pub(crate) enum Greeting {
    Memory(Offer),
    /// The listener ended before it served us.
    HungUp,
}

/// The connector's first half: says HELLO, which requires exactly these features, and waits for the memory.
pub(crate) fn greet(
    socket: BorrowedFd<'_>,
    features: u32,
    deadline: Option<Instant>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Greeting> {
    // A listener that refuses has answered and hung up already: its answer can still be read.
    match send(socket, Type::Hello, Message { features, ..Message::EMPTY }, None) {
        Err(error) if error.kind() != ErrorKind::PeerDead => return Err(error),
        _ => {}
    }
    let mut inbox = Inbox::new();
    loop {
        match inbox.fill(socket)? {
            Progress::Whole => break,
            Progress::HungUp if inbox.filled == 0 => return Ok(Greeting::HungUp),
            Progress::HungUp => return Err(inbox.hung_up(Type::Welcome)),
            Progress::Partial => {}
        }
        wait_for_welcome(socket, deadline, go_on, &inbox)?;
    }
    let (message, descriptor) = inbox.message(Type::Welcome, features, 1)?;
    if features == RPC_FEATURES && message.max_in_flight == 0 {
        return Err(Error::new(ErrorKind::Corrupt, "WELCOME allows 0 calls in flight, expected at least 1"));
    }
    match descriptor {
        Some(descriptor) => {
            Ok(Greeting::Memory(Offer { memory: descriptor, size: message.size, max_in_flight: message.max_in_flight }))
        }
        None => Err(Error::os(libc::EMFILE, "receiving the descriptor of WELCOME")),
    }
}

/// Waits for more of the answer, and asks every [`POLL_INTERVAL`] whether that is still wanted.
fn wait_for_welcome(
    socket: BorrowedFd<'_>,
    deadline: Option<Instant>,
    go_on: &mut dyn FnMut() -> bool,
    inbox: &Inbox,
) -> Result<()> {
    loop {
        let round = Instant::now() + POLL_INTERVAL;
        let last = deadline.is_some_and(|deadline| deadline <= round);
        if socket::wait_readable(socket, if last { deadline } else { Some(round) })? {
            return Ok(());
        }
        if last {
            return Err(inbox.silent(Type::Welcome));
        }
        if !go_on() {
            return Err(ErrorKind::Interrupted.into());
        }
    }
}

/// The connector's second half: tells the listener whether the memory was good.
pub(crate) fn acknowledge<T>(socket: BorrowedFd<'_>, outcome: &Result<T>) -> Result<()> {
    let status = outcome.as_ref().err().map_or(0, |error| error.code() as u32);
    send(socket, Type::Ack, Message::status(status), None)
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
