//! What travels: keys, and the bytes of each message. Pure functions; what is decoded has been checked against its length.
//!
//! All numbers are little-endian. `docs/guides/bridge-format.md` is the same in words.

use crate::stream::{Ack, End, Ending, Hello, Pos, Record};

/// What a message of a reliable stream begins with: `RWB` and the version.
pub const MAGIC: u32 = u32::from_le_bytes(*b"RWB\x01");

/// Bytes of a [`Hello`].
pub const HELLO_LEN: usize = 80;
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

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
