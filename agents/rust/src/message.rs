//! What message number `seq` is, and whether it arrived as such.

/// How long message number `seq` is.
#[derive(Clone, Copy)]
pub(crate) enum Sizes {
    Fixed(u64),
    Ramp,
    Mixed,
}

impl std::str::FromStr for Sizes {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "mixed" => Ok(Self::Mixed),
            "ramp" => Ok(Self::Ramp),
            number => number.parse().map(Self::Fixed),
        }
    }
}

/// Every message of a ring whose longest has `max` bytes.
pub(crate) struct Messages {
    sizes: Sizes,
    max: u64,
    /// Bytes 0, 1, …, 255, 0, …: every payload is a piece of it.
    pattern: Vec<u8>,
}

/// Message number `seq`.
pub(crate) struct Made<'a> {
    pub(crate) type_id: u32,
    pub(crate) tag: u64,
    pub(crate) payload: &'a [u8],
}

impl Messages {
    pub(crate) fn new(sizes: Sizes, max: u64) -> Self {
        let longest = if let Sizes::Fixed(size) = sizes { size.max(max + 1) } else { max + 1 };
        Self { sizes, max, pattern: (0..longest + 256).map(|i| i as u8).collect() }
    }

    fn len(&self, seq: u64) -> u64 {
        let x = u64::from((seq as u32).wrapping_mul(2_654_435_761));
        match self.sizes {
            Sizes::Fixed(size) => size,
            Sizes::Ramp => seq % (self.max + 1),
            Sizes::Mixed if seq % 1000 == 999 => self.max,
            Sizes::Mixed if seq.is_multiple_of(100) => 0,
            Sizes::Mixed if seq % 50 == 1 => x % (self.max + 1),
            Sizes::Mixed => x % 257,
        }
    }

    pub(crate) fn make(&self, seq: u64) -> Made<'_> {
        let payload = &self.pattern[(seq % 256) as usize..][..self.len(seq) as usize];
        Made { type_id: (seq % 60_000) as u32, tag: tag(seq, payload), payload }
    }

    /// What is wrong with what came as message number `seq`.
    pub(crate) fn check(&self, seq: u64, type_id: u32, tag_seen: u64, payload: &[u8]) -> Result<(), String> {
        let len = self.len(seq);
        if payload.len() as u64 != len {
            return Err(format!("length {} instead of {len}, tag {tag_seen:#018x}", payload.len()));
        }
        if u64::from(type_id) != seq % 60_000 {
            return Err(format!("type id {type_id} instead of {}", seq % 60_000));
        }
        // Of the bytes that came, so that each of them is read.
        if tag(seq, payload) != tag_seen {
            return Err(format!("tag {tag_seen:#018x} instead of {:#018x}", tag(seq, payload)));
        }
        let expected = &self.pattern[(seq % 256) as usize..][..len as usize];
        match payload.iter().zip(expected).position(|(a, b)| a != b) {
            Some(at) => Err(format!("byte {at} is {} instead of {}", payload[at], expected[at])),
            None => Ok(()),
        }
    }
}

pub(crate) fn tag(seq: u64, payload: &[u8]) -> u64 {
    (u64::from(crc32fast::hash(payload)) << 32) | (seq & 0xFFFF_FFFF)
}
