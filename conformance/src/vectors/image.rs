//! Bytes of segments, written by the offsets of `docs/ABI.md`. A second statement of the format: nothing here comes
//! from `core/`, so that a mistake in one of the two shows.

use std::collections::BTreeMap;

use super::model::{Message, Run};

// Section 2, the segment header.
pub const MAGIC: &[u8; 8] = b"RAMWAY\r\n";
pub const BYTE_ORDER: u64 = 0x08;
pub const VERSION_MAJOR: u64 = 0x0C;
pub const VERSION_MINOR: u64 = 0x0E;
pub const KIND: u64 = 0x10;
pub const FLAGS: u64 = 0x14;
pub const FEATURES_REQUIRED: u64 = 0x18;
pub const FEATURES_OPTIONAL: u64 = 0x1C;
pub const SIZE: u64 = 0x20;
pub const CREATED_NS: u64 = 0x28;
pub const BOOT_ID: u64 = 0x30;
pub const PERSISTENT: u32 = 1;

// Section 3, the blocks.
pub const BLOCKS: [u64; 2] = [0x400, 0x800];
pub const DATA_OFFSET: u64 = 0x000;
pub const CAPACITY: u64 = 0x008;
pub const LEN: u64 = 0x010;
pub const ALIGN: u64 = 0x018;
pub const RESERVED: u64 = 0x01C;
pub const TAIL: u64 = 0x080;
/// `end` of each last-tag record; its `tag` is 8 bytes further on.
pub const LAST_TAGS: [u64; 2] = [0x088, 0x098];
pub const HEAD: u64 = 0x100;
pub const PRODUCER: u64 = 0x180;
pub const CONSUMER: u64 = 0x200;
/// Inside a role's line.
pub const WAIT: u64 = 0x0;
pub const ROLE_FLAGS: u64 = 0x4;
pub const EPOCH: u64 = 0x8;
pub const CLOSE_SEEN: u64 = 0xC;
pub const NOTIFY: u64 = 0x080;

// Section 6, the flags of a role.
pub const MEMBARRIER_CAPABLE: u32 = 1;
pub const FENCE_FREE: u32 = 2;
pub const CLOSED: u32 = 4;

/// When all of these were made: a fixed moment, so that the files do not change.
const CREATED: u64 = 1_767_225_600_000_000_000;
/// A header page.
pub const PAGE: u64 = 0x1000;

/// The `kind` numbers of section 2.
pub const REGION: u32 = 1;
pub const RING: u32 = 2;
pub const BUS: u32 = 3;
pub const LISTENER: u32 = 4;

/// A file's bytes, of which most are 0.
#[derive(Clone, Debug, Default)]
pub struct Image {
    pub size: u64,
    bytes: BTreeMap<u64, u8>,
}

impl Image {
    /// Nothing but zeros.
    pub fn zeros(size: u64) -> Self {
        Self { size, bytes: BTreeMap::new() }
    }

    /// A segment header (section 2) and nothing else.
    pub fn header(kind: u32, size: u64) -> Self {
        let mut image = Self::zeros(size);
        image.put(0, MAGIC);
        image.u32(BYTE_ORDER, 0x0A0B_0C0D);
        image.u16(VERSION_MAJOR, 1);
        image.u32(KIND, kind);
        image.u64(SIZE, size);
        image.u64(CREATED_NS, CREATED);
        image
    }

    /// A region (section 9) whose data follows the header page, with its bytes all 0.
    pub fn region(len: u64) -> Self {
        let capacity = len.next_multiple_of(PAGE);
        let mut image = Self::header(REGION, PAGE + capacity);
        image.u64(BLOCKS[0] + DATA_OFFSET, PAGE);
        image.u64(BLOCKS[0] + CAPACITY, capacity);
        image.u64(BLOCKS[0] + LEN, len);
        image
    }

    pub fn put(&mut self, at: u64, bytes: &[u8]) -> &mut Self {
        for (i, &byte) in bytes.iter().enumerate() {
            self.bytes.insert(at + i as u64, byte);
        }
        self
    }

    pub fn u16(&mut self, at: u64, value: u16) -> &mut Self {
        self.put(at, &value.to_le_bytes())
    }

    pub fn u32(&mut self, at: u64, value: u32) -> &mut Self {
        self.put(at, &value.to_le_bytes())
    }

    pub fn u64(&mut self, at: u64, value: u64) -> &mut Self {
        self.put(at, &value.to_le_bytes())
    }

    pub fn byte(&self, at: u64) -> u8 {
        self.bytes.get(&at).copied().unwrap_or(0)
    }

    pub fn read(&self, at: u64, len: u64) -> Vec<u8> {
        (at..at + len).map(|at| self.byte(at)).collect()
    }

    pub fn read_u32(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.read(at, 4).try_into().expect("4 bytes"))
    }

    /// The file cut off, or made longer with zeros; `size` in its header stays as it is.
    pub fn resize(&mut self, size: u64) -> &mut Self {
        self.size = size;
        self.bytes.retain(|&at, _| at < size);
        self
    }

    /// What is not 0, in runs that do not cross a multiple of 64.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for (&at, &byte) in self.bytes.iter().filter(|(_, byte)| **byte != 0) {
            match runs.last_mut() {
                Some((start, bytes)) if at - (*start + bytes.len() as u64) < 8 && at / 64 == *start / 64 => {
                    bytes.resize((at - *start) as usize, 0);
                    bytes.push(byte);
                }
                _ => runs.push((at, vec![byte])),
            }
        }
        runs.into_iter().map(|(at, bytes)| run(at, &bytes)).collect()
    }
}

pub fn run(at: u64, bytes: &[u8]) -> Run {
    Run { at, hex: hex(bytes), mask: None }
}

pub fn run_u32(at: u64, value: u32) -> Run {
    run(at, &value.to_le_bytes())
}

pub fn run_u64(at: u64, value: u64) -> Run {
    run(at, &value.to_le_bytes())
}

/// Two digits a byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of what [`hex`] gave. `None` if it is not that.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// One ring of a segment: what has been written into an image, as a producer would have (sections 4 and 5).
#[derive(Clone, Debug)]
pub struct Ring {
    /// Segment offset of the block.
    pub block: u64,
    pub data: u64,
    pub capacity: u64,
    pub align: u64,
    pub tail: u64,
    pub head: u64,
    /// The last-tag record that is written next.
    next_last_tag: usize,
    /// What lies from `head` to `tail`.
    pub messages: Vec<Message>,
}

impl Ring {
    /// Writes a new ring's geometry and positions.
    pub fn new(image: &mut Image, block: u64, data: u64, capacity: u64, align: u64) -> Self {
        image.u64(block + DATA_OFFSET, data);
        image.u64(block + CAPACITY, capacity);
        image.u32(block + ALIGN, align as u32);
        let mut ring = Self { block, data, capacity, align, tail: 0, head: 0, next_last_tag: 0, messages: Vec::new() };
        ring.start(image, align - 16);
        ring
    }

    /// A named ring's segment: the data right after the header page.
    pub fn segment(capacity: u64, align: u64) -> (Image, Self) {
        let mut image = Image::header(RING, PAGE + capacity);
        let ring = Self::new(&mut image, BLOCKS[0], PAGE, capacity, align);
        (image, ring)
    }

    /// A bus's memory: the ring to the connector, the ring back, and their data one after the other.
    pub fn bus(capacities: [u64; 2], aligns: [u64; 2]) -> (Image, [Self; 2]) {
        let mut image = Image::header(BUS, PAGE + capacities[0] + capacities[1]);
        let to = Self::new(&mut image, BLOCKS[0], PAGE, capacities[0], aligns[0]);
        let back = Self::new(&mut image, BLOCKS[1], PAGE + capacities[0], capacities[1], aligns[1]);
        (image, [to, back])
    }

    /// Everything before this position has been sent and released.
    pub fn start(&mut self, image: &mut Image, position: u64) {
        (self.tail, self.head) = (position, position);
        image.u64(self.block + TAIL, position).u64(self.block + HEAD, position);
    }

    /// Bytes that a frame takes.
    pub fn frame(&self, len: u64) -> u64 {
        (16 + len).next_multiple_of(self.align)
    }

    /// Segment offset of the byte at a position.
    pub fn at(&self, position: u64) -> u64 {
        self.data + (position & (self.capacity - 1))
    }

    /// Writes bytes from a position on, across the end of the data area where they reach it.
    pub fn write(&self, image: &mut Image, position: u64, bytes: &[u8]) {
        for (i, &byte) in bytes.iter().enumerate() {
            image.put(self.at(position.wrapping_add(i as u64)), &[byte]);
        }
    }

    /// A frame at a position, whatever its length says.
    pub fn header_at(&self, image: &mut Image, position: u64, len: u32, type_id: u32, tag: u64) {
        self.write(image, position, &frame_header(len, type_id, tag));
    }

    /// One message, published by itself.
    pub fn send(&mut self, image: &mut Image, type_id: u32, tag: u64, payload: &[u8]) {
        self.header_at(image, self.tail, payload.len() as u32, type_id, tag);
        self.write(image, self.tail.wrapping_add(16), payload);
        self.tail = self.tail.wrapping_add(self.frame(payload.len() as u64));
        if tag != 0 {
            let record = self.block + LAST_TAGS[self.next_last_tag];
            image.u64(record, self.tail).u64(record + 8, tag);
            self.next_last_tag ^= 1;
        }
        image.u64(self.block + TAIL, self.tail);
        self.messages.push(message(type_id, tag, payload));
    }

    /// Message number `seq` of the programs' contract, with `len` bytes.
    pub fn send_number(&mut self, image: &mut Image, seq: u64, len: u64) {
        let payload = payload(seq, len);
        self.send(image, (seq % 60_000) as u32, number_tag(seq, &payload), &payload);
    }

    /// The first `count` messages have been received and released.
    pub fn release(&mut self, image: &mut Image, count: usize) {
        for message in self.messages.drain(..count).collect::<Vec<_>>() {
            self.head = self.head.wrapping_add(self.frame(message.len));
        }
        image.u64(self.block + HEAD, self.head);
    }

    /// The longest message of section 4.
    pub fn max(&self) -> u64 {
        (self.capacity - 16).min((1 << 31) - 17)
    }

    /// Sets a role's words: `role` is [`PRODUCER`] or [`CONSUMER`].
    pub fn role(&self, image: &mut Image, role: u64, flags: u32, epoch: u32) {
        image.u32(self.block + role + ROLE_FLAGS, flags).u32(self.block + role + EPOCH, epoch);
    }
}

pub fn frame_header(len: u32, type_id: u32, tag: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    bytes[4..8].copy_from_slice(&type_id.to_le_bytes());
    bytes[8..].copy_from_slice(&tag.to_le_bytes());
    bytes
}

/// The payload of message number `seq`.
pub fn payload(seq: u64, len: u64) -> Vec<u8> {
    (0..len).map(|i| (seq + i) as u8).collect()
}

/// The tag of message number `seq`.
pub fn number_tag(seq: u64, payload: &[u8]) -> u64 {
    u64::from(crc32fast::hash(payload)) << 32 | seq & 0xFFFF_FFFF
}

/// What a reader must find of a message.
pub fn message(type_id: u32, tag: u64, payload: &[u8]) -> Message {
    Message { type_id, tag: tag.to_string(), len: payload.len() as u64, crc32: crc32fast::hash(payload) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_what_was_written() {
        let mut image = Image::zeros(1000);
        image.put(60, &[1; 8]).put(100, &[0, 2, 0, 0, 3, 0]).put(500, &[0; 20]);
        let runs: Vec<_> = image.runs().into_iter().map(|run| (run.at, run.hex)).collect();
        assert_eq!(runs, [(60, "01010101".into()), (64, "01010101".into()), (101, "02000003".into())]);
        assert_eq!(unhex("02000003").unwrap(), [2, 0, 0, 3]);
    }
}
