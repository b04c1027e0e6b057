//! What travels: keys, and the bytes of each message. Pure functions; what is decoded has been checked against its length.
//!
//! All numbers are little-endian. `docs/guides/bridge-format.md` is the same in words.

use crate::stream::{Ack, End, Ending, Hello, Pos, Record};

/// What a message of a reliable stream begins with: `RWB` and the version.
pub const MAGIC: u32 = u32::from_le_bytes(*b"RWB\x01");

/// Bytes of a [`Hello`].
pub const HELLO_LEN: usize = 88;
/// Bytes of an [`Ack`].
pub const ACK_LEN: usize = 80;
/// Bytes before the records of data.
pub const DATA_HEADER: usize = 32;
/// Bytes before the payload of a record.
pub const RECORD_HEADER: usize = 56;
/// Bytes of the attachment of a message of a lossy or newest rule.
pub const STAMP_LEN: usize = 48;

const HELLO: u32 = 1;
const DATA: u32 = 2;
const ACK: u32 = 3;
const OFFER: u32 = 4;
const WANT: u32 = 5;
const OPEN: u32 = 6;
const OPENED: u32 = 7;
const OVER: u32 = 8;

/// Bytes that every message about a connection begins with: [`Head`].
pub const HEAD_LEN: usize = 24;
/// Bytes of an [`Offer`].
pub const OFFER_LEN: usize = 56;
/// Bytes of a message about a connection that is not of one of its streams.
pub const NOTE_LEN: usize = 32;

/// The key of `verb` for the segment `name`. No name has a character that a key gives a meaning to: letters, digits, `.`, `_`
/// and `-` are all there are.
#[must_use]
pub fn key(base: &str, kind: &str, name: &str, verb: &str) -> String {
    format!("{base}/{kind}/{name}/{verb}")
}

/// The prefix of a rule's keys.
#[must_use]
pub fn base(link: &str, rule: &str) -> String {
    let parts = [link, rule].map(|part| part.trim_matches('/'));
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

/// The name in a key that [`key`] made, if it is one of this base and kind.
#[must_use]
pub fn name_in<'a>(key: &'a str, base: &str, kind: &str) -> Option<&'a str> {
    let rest = key.strip_prefix(base)?.strip_prefix('/')?.strip_prefix(kind)?.strip_prefix('/')?;
    rest.split('/').next().filter(|name| is_name(name))
}

/// Whether a name may stand in the Ramway directory: what comes from elsewhere never becomes a path.
#[must_use]
pub fn is_name(name: &str) -> bool {
    (1..=200).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// Reads numbers off the front of some bytes.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn begins(&mut self, kind: u32) -> Option<()> {
        (self.u32()? == MAGIC && self.u32()? == kind).then_some(())
    }

    fn end(&mut self) -> Option<Option<End>> {
        let (how, epoch) = (self.u32()?, self.u32()?);
        match how {
            0 => Some(None),
            1 => Some(Some(End { how: Ending::Closed, epoch })),
            2 => Some(Some(End { how: Ending::Dead, epoch })),
            _ => None,
        }
    }
}

fn begin(kind: u32, len: usize) -> Vec<u8> {
    let mut to = Vec::with_capacity(len);
    to.extend_from_slice(&MAGIC.to_le_bytes());
    to.extend_from_slice(&kind.to_le_bytes());
    to
}

fn put_end(to: &mut Vec<u8>, end: Option<End>) {
    let (how, epoch) = match end {
        None => (0u32, 0),
        Some(End { how: Ending::Closed, epoch }) => (1, epoch),
        Some(End { how: Ending::Dead, epoch }) => (2, epoch),
    };
    to.extend_from_slice(&how.to_le_bytes());
    to.extend_from_slice(&epoch.to_le_bytes());
}

/// What [`decode_hello`] reads.
#[must_use]
pub fn encode_hello(hello: &Hello) -> Vec<u8> {
    let mut to = begin(HELLO, HELLO_LEN);
    for number in [hello.near, hello.stream, hello.attempt, hello.released, hello.cursor.frame] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    for number in [hello.cursor.offset, hello.align] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    to.extend_from_slice(&hello.capacity.to_le_bytes());
    to.extend_from_slice(&hello.far.to_le_bytes());
    put_end(&mut to, hello.end);
    to.extend_from_slice(&hello.time.to_le_bytes());
    to
}

/// A near end says where it is; `None` if these are not the bytes of that.
#[must_use]
pub fn decode_hello(bytes: &[u8]) -> Option<Hello> {
    let mut from = Reader(bytes);
    from.begins(HELLO)?;
    Some(Hello {
        near: from.u64()?,
        stream: from.u64()?,
        attempt: from.u64()?,
        released: from.u64()?,
        cursor: Pos { frame: from.u64()?, offset: from.u32()? },
        align: from.u32()?,
        capacity: from.u64()?,
        far: from.u64()?,
        end: from.end()?,
        time: from.u64()?,
    })
}

/// What [`decode_ack`] reads.
#[must_use]
pub fn encode_ack(ack: &Ack) -> Vec<u8> {
    let mut to = begin(ACK, ACK_LEN);
    for number in [ack.far, ack.stream, ack.attempt, ack.run, ack.committed, ack.expected.frame] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    to.extend_from_slice(&ack.expected.offset.to_le_bytes());
    let flags = u32::from(ack.again) | u32::from(ack.unknown) << 1;
    to.extend_from_slice(&flags.to_le_bytes());
    put_end(&mut to, ack.far_end);
    to.extend_from_slice(&ack.end_seen.to_le_bytes());
    to.extend_from_slice(&ack.window.to_le_bytes());
    to
}

/// A far end says where it is; `None` if these are not the bytes of that.
#[must_use]
pub fn decode_ack(bytes: &[u8]) -> Option<Ack> {
    let mut from = Reader(bytes);
    from.begins(ACK)?;
    let (far, stream, attempt, run) = (from.u64()?, from.u64()?, from.u64()?, from.u64()?);
    let (committed, expected) = (from.u64()?, Pos { frame: from.u64()?, offset: from.u32()? });
    let flags = from.u32()?;
    Some(Ack {
        far,
        stream,
        attempt,
        run,
        committed,
        expected,
        again: flags & 1 != 0,
        unknown: flags & 2 != 0,
        far_end: from.end()?,
        end_seen: from.u32()?,
        window: from.u32()?,
    })
}

/// Data of a stream, to which [`push_record`] adds.
#[must_use]
pub fn begin_data(near: u64, stream: u64, attempt: u64, room: usize) -> Vec<u8> {
    let mut to = begin(DATA, DATA_HEADER + room);
    for number in [near, stream, attempt] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    to
}

/// Adds a record.
pub fn push_record(to: &mut Vec<u8>, record: &Record, payload: &[u8]) {
    for number in [record.start.frame, record.next, record.tag, record.seq, record.time] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    for number in [record.start.offset, record.total, record.type_id, payload.len() as u32] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    to.extend_from_slice(payload);
}

/// What data says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// Who sent it.
    pub near: u64,
    /// Of which stream.
    pub stream: u64,
    /// In which attempt.
    pub attempt: u64,
}

/// Reads data; the records follow, see [`next_record`]. `None` if these are not the bytes of that.
#[must_use]
pub fn decode_data(bytes: &[u8]) -> Option<(DataHeader, &[u8])> {
    let mut from = Reader(bytes);
    from.begins(DATA)?;
    let header = DataHeader { near: from.u64()?, stream: from.u64()?, attempt: from.u64()? };
    Some((header, from.0))
}

/// Takes the next record off `bytes`. `None`: there is none, or it is cut short or says what cannot be.
#[must_use]
pub fn next_record<'a>(bytes: &mut &'a [u8]) -> Option<(Record, &'a [u8])> {
    let mut from = Reader(bytes);
    let (frame, next, tag, seq, time) = (from.u64()?, from.u64()?, from.u64()?, from.u64()?, from.u64()?);
    let (offset, total, type_id, len) = (from.u32()?, from.u32()?, from.u32()?, from.u32()?);
    let (payload, rest) = from.0.split_at_checked(len as usize)?;
    // Within the message, and a step forward in it; and a message begins before the next one.
    if offset.checked_add(len)? > total || next <= frame || (len == 0 && total != 0) {
        return None;
    }
    *bytes = rest;
    Some((Record { start: Pos { frame, offset }, next, tag, seq, time, total, type_id }, payload))
}

/// What the attachment of a message of a lossy or newest rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The machine that published it.
    pub near: u64,
    /// The topic there.
    pub stream: u64,
    /// Its number there.
    pub seq: u64,
    /// When it was published, nanoseconds since 1970; 0: not said.
    pub time: u64,
    /// Its tag.
    pub tag: u64,
    /// Its type id.
    pub type_id: u32,
}

/// What [`decode_stamp`] reads.
#[must_use]
pub fn encode_stamp(stamp: &Stamp) -> Vec<u8> {
    let mut to = Vec::with_capacity(STAMP_LEN);
    to.extend_from_slice(&MAGIC.to_le_bytes());
    to.extend_from_slice(&stamp.type_id.to_le_bytes());
    for number in [stamp.near, stamp.stream, stamp.seq, stamp.time, stamp.tag] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    to
}

/// `None` if these are not the bytes of an attachment.
#[must_use]
pub fn decode_stamp(bytes: &[u8]) -> Option<Stamp> {
    let mut from = Reader(bytes);
    if from.u32()? != MAGIC {
        return None;
    }
    let type_id = from.u32()?;
    let (near, stream, seq, time, tag) = (from.u64()?, from.u64()?, from.u64()?, from.u64()?, from.u64()?);
    Some(Stamp { near, stream, seq, time, tag, type_id })
}

/// How a listener speaks: what its buses are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Of RPC: how many calls a client may have in flight; else 0.
    pub max_in_flight: u32,
    /// Alignment of payloads.
    pub align: u32,
    /// Capacity in bytes of the ring from the listener to its client; 0 if there is no ring that way.
    pub to_client: u64,
    /// Bytes of the ring back.
    pub from_client: u64,
}

/// A listener on the machine that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The machine.
    pub near: u64,
    /// The listener; 0: it is gone.
    pub listener: u64,
    /// How it speaks, as soon as somebody has wanted to know.
    pub terms: Option<Terms>,
}

/// What [`decode_offer`] reads.
#[must_use]
pub fn encode_offer(offer: &Offer) -> Vec<u8> {
    let mut to = begin(OFFER, OFFER_LEN);
    for number in [offer.near, offer.listener] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    let known = Terms { max_in_flight: 0, align: 0, to_client: 0, from_client: 0 };
    let Terms { max_in_flight, align, to_client, from_client } = offer.terms.unwrap_or(known);
    for number in [u32::from(offer.terms.is_some()), max_in_flight, align, 0] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    for number in [to_client, from_client] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    to
}

/// A listener is or was there; `None` if these are not the bytes of that.
#[must_use]
pub fn decode_offer(bytes: &[u8]) -> Option<Offer> {
    let mut from = Reader(bytes);
    from.begins(OFFER)?;
    let (near, listener) = (from.u64()?, from.u64()?);
    let (known, max_in_flight, align, _) = (from.u32()?, from.u32()?, from.u32()?, from.u32()?);
    let terms = Terms { max_in_flight, align, to_client: from.u64()?, from_client: from.u64()? };
    Some(Offer { near, listener, terms: (known == 1).then_some(terms) })
}

/// What a message about a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// [`Hello`] of one of its streams.
    Hello,
    /// Data of one of its streams.
    Data,
    /// [`Ack`] of one of its streams.
    Ack,
    /// The sender imports what is offered, and would know its [`Terms`].
    Want,
    /// A program has connected to the sender's listener: connect to the one that was offered.
    Open,
    /// The answer to that.
    Opened,
    /// The sender has nothing more of one of its streams, or of both.
    Over,
}

/// What every message about a connection begins with: those of its streams too, where the stream's number is the connection's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it is.
    pub about: About,
    /// The machine that sends it.
    pub from: u64,
    /// The connection.
    pub connection: u64,
}

/// The head of a message about a connection; `None` if these are not the bytes of that.
#[must_use]
pub fn decode_head(bytes: &[u8]) -> Option<Head> {
    let mut from = Reader(bytes);
    let (magic, kind) = (from.u32()?, from.u32()?);
    let about = match (magic, kind) {
        (MAGIC, HELLO) => About::Hello,
        (MAGIC, DATA) => About::Data,
        (MAGIC, ACK) => About::Ack,
        (MAGIC, WANT) => About::Want,
        (MAGIC, OPEN) => About::Open,
        (MAGIC, OPENED) => About::Opened,
        (MAGIC, OVER) => About::Over,
        _ => return None,
    };
    Some(Head { about, from: from.u64()?, connection: from.u64()? })
}

/// Of [`About::Over`]: the stream from the sender is over.
pub const OVER_FROM: u32 = 1;
/// Of [`About::Over`]: the stream to the sender is over.
pub const OVER_TO: u32 = 2;

/// What [`decode_note`] reads. `number`: of [`About::Opened`] 0 or the number of the error; of [`About::Over`] which streams; else 0.
#[must_use]
pub fn encode_note(head: &Head, number: u32) -> Vec<u8> {
    let kind = match head.about {
        About::Hello => HELLO,
        About::Data => DATA,
        About::Ack => ACK,
        About::Want => WANT,
        About::Open => OPEN,
        About::Opened => OPENED,
        About::Over => OVER,
    };
    let mut to = begin(kind, NOTE_LEN);
    for number in [head.from, head.connection] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    for number in [number, 0] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    to
}

/// The number of a message about a connection that is not of one of its streams.
#[must_use]
pub fn decode_note(bytes: &[u8]) -> Option<u32> {
    Reader(bytes.get(HEAD_LEN..NOTE_LEN)?).u32()
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
