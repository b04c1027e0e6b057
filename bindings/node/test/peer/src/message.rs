//! What message number `seq` is, as in `conformance/README.md`: everything follows from the number, so that each side
//! can tell what is missing, torn or out of order.

use std::num::ParseIntError;
use std::str::FromStr;

/// How long message number `seq` is.
#[derive(Clone, Copy)]
pub(crate) enum Sizes {
    Fixed(usize),
    /// From nothing to the longest, many of them short.
    Mixed,
}

impl FromStr for Sizes {
    type Err = ParseIntError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        if word == "mixed" { Ok(Self::Mixed) } else { word.parse().map(Self::Fixed) }
    }
}

impl Sizes {
    pub(crate) fn of(self, seq: u64, longest: usize) -> usize {
        let x = (seq as u32).wrapping_mul(2_654_435_761) as usize;
        match self {
            Self::Fixed(len) => len,
            Self::Mixed if seq % 1000 == 999 => longest,
            Self::Mixed if seq.is_multiple_of(100) => 0,
            Self::Mixed if seq % 50 == 1 => x % (longest + 1),
            Self::Mixed => x % 257,
        }
    }
}

pub(crate) fn payload(seq: u64, to: &mut [u8]) {
    for (i, byte) in to.iter_mut().enumerate() {
        *byte = (seq as usize + i) as u8;
    }
}

pub(crate) fn tag(seq: u64, payload: &[u8]) -> u64 {
    (u64::from(crc32fast::hash(payload)) << 32) | (seq & 0xFFFF_FFFF)
}

/// What is wrong with a message that came as number `seq`, of whatever length.
pub(crate) fn damage(seq: u64, type_id: u32, tag_seen: u64, bytes: &[u8]) -> Option<String> {
    if u64::from(type_id) != seq % 60_000 {
        return Some(format!("type id {type_id}"));
    }
    // Of the bytes that came: what was sent had this length too.
    if tag_seen != tag(seq, bytes) {
        return Some(format!("tag {tag_seen:#018x} and {} bytes", bytes.len()));
    }
    let mut expected = vec![0; bytes.len()];
    payload(seq, &mut expected);
    let at = bytes.iter().zip(&expected).position(|(a, b)| a != b)?;
    Some(format!("byte {at} is {}", bytes[at]))
}
