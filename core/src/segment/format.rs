//! The header page as bytes: how a new one is filled in, and what of an existing one is believed.
//!
//! Validation works on a private copy, so each number is read once and what was checked is what is used.

mod topic;

use std::mem::offset_of;

use crate::error::{Error, ErrorKind, Result};
use crate::facts::FEATURE_RPC;
use crate::layout::{
    ALIGN_MAX, ALIGN_MIN, BLOCK_OFFSETS, BYTE_ORDER, FEATURES_KNOWN, FLAG_PERSISTENT, Geometry, HEADER_SIZE, Kind,
    MAGIC, RingBlock, SegmentHeader, VERSION_MAJOR, VERSION_MINOR, VERSION_MINOR_TOPIC, first_position,
};
use crate::sys::mem::page_size;

pub(crate) use topic::TopicGeometry;

/// A private copy of a header page.
#[derive(Clone)]
pub(crate) struct HeaderPage(pub(crate) Box<[u8; HEADER_SIZE]>);

impl HeaderPage {
    pub(crate) fn zeroed() -> Self {
        Self(Box::new([0; HEADER_SIZE]))
    }

    pub(crate) fn starts_with(&self, bytes: &[u8]) -> bool {
        self.0.starts_with(bytes)
    }

    /// The size that the header claims for the whole segment, unchecked.
    pub(crate) fn claimed_size(&self) -> u64 {
        self.u64(offset_of!(SegmentHeader, size))
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0[at..at + N].try_into().expect("the slice has N bytes")
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_ne_bytes(self.array(at))
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.array(at))
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.array(at))
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// What a new segment is to hold.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    pub(crate) flags: u32,
    /// What a reader must know to use it.
    pub(crate) features_required: u32,
    /// All zero for a segment without a name.
    pub(crate) boot_id: [u8; 16],
    /// The whole segment's length: what the file must be sized to.
    pub(crate) size: u64,
    pub(crate) blocks: [Option<Geometry>; 2],
    /// In place of the blocks.
    pub(crate) topic: Option<TopicGeometry>,
}

impl Spec {
    /// A ring. `granule` is the (huge) page that the data's offset and capacity are multiples of.
    pub(crate) fn ring(capacity: u64, align: u32, granule: usize) -> Result<Self> {
        Self::rings(Kind::Ring, &[capacity], align, granule)
    }

    /// A bus: `to_peer` is what the listener sends into. A capacity of 0 leaves that direction out.
    pub(crate) fn bus(to_peer: u64, from_peer: u64, align: u32, granule: usize) -> Result<Self> {
        Self::rings(Kind::Bus, &[to_peer, from_peer], align, granule)
    }

    fn rings(kind: Kind, capacities: &[u64], align: u32, granule: usize) -> Result<Self> {
        if !align.is_power_of_two() || !(ALIGN_MIN..=ALIGN_MAX).contains(&align) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("alignment {align}: expected a power of two from {ALIGN_MIN} to {ALIGN_MAX}"),
            ));
        }
        let mut spec = Self::empty(kind, granule);
        for (i, &capacity) in capacities.iter().enumerate() {
            let capacity = if capacity == 0 && kind == Kind::Bus { 0 } else { round_capacity(capacity, granule)? };
            spec.blocks[i] = Some(Geometry { data_offset: spec.size, capacity, len: 0, align, reserved: 0 });
            spec.size = spec.size.checked_add(capacity).ok_or_else(|| too_big(capacity))?;
        }
        Ok(spec)
    }

    /// A region of `len` bytes, more than 0.
    pub(crate) fn region(len: u64, granule: usize) -> Result<Self> {
        if len == 0 {
            return Err(Error::new(ErrorKind::InvalidArgument, "a region of 0 bytes: expected at least 1"));
        }
        let mut spec = Self::empty(Kind::Region, granule);
        let capacity = len.checked_next_multiple_of(granule as u64).ok_or_else(|| too_big(len))?;
        spec.blocks[0] = Some(Geometry { data_offset: spec.size, capacity, len, align: 0, reserved: 0 });
        spec.size = spec.size.checked_add(capacity).ok_or_else(|| too_big(len))?;
        Ok(spec)
    }

    /// The lock of a listening socket.
    pub(crate) fn listener() -> Self {
        Self::empty(Kind::Listener, page_size())
    }

    fn empty(kind: Kind, granule: usize) -> Self {
        let size = granule.max(HEADER_SIZE) as u64;
        Self { kind, flags: 0, features_required: 0, boot_id: [0; 16], size, blocks: [None; 2], topic: None }
    }

    pub(crate) fn persistent(mut self, yes: bool) -> Self {
        self.flags = if yes { FLAG_PERSISTENT } else { 0 };
        self
    }

    /// For a segment with a name: only then does the boot matter, because only files can outlive one.
    pub(crate) fn named(mut self) -> Self {
        self.boot_id = crate::sys::fs::boot_id();
        self
    }
}

fn too_big(bytes: u64) -> Error {
    Error::new(ErrorKind::NoSpace, format!("a capacity of {bytes} bytes is more than any machine has: ask for less"))
}

/// The capacity that a ring gets for the asked one: a power of two, at least a granule.
pub(crate) fn round_capacity(asked: u64, granule: usize) -> Result<u64> {
    let rounded = asked.max(granule as u64).checked_next_power_of_two().ok_or_else(|| too_big(asked))?;
    if rounded > 1 << 62 { Err(too_big(asked)) } else { Ok(rounded) }
}

/// The header page of a new segment. Rings and topics begin empty at their first position, everything else is 0.
pub(crate) fn format(spec: &Spec) -> HeaderPage {
    let mut page = HeaderPage::zeroed();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    page.put(offset_of!(SegmentHeader, magic), &MAGIC);
    page.put(offset_of!(SegmentHeader, byte_order), &BYTE_ORDER.to_ne_bytes());
    page.put(offset_of!(SegmentHeader, version_major), &VERSION_MAJOR.to_ne_bytes());
    let minor = if spec.kind == Kind::Topic { VERSION_MINOR_TOPIC } else { VERSION_MINOR };
    page.put(offset_of!(SegmentHeader, version_minor), &minor.to_ne_bytes());
    page.put(offset_of!(SegmentHeader, kind), &(spec.kind as u32).to_ne_bytes());
    page.put(offset_of!(SegmentHeader, flags), &spec.flags.to_ne_bytes());
    page.put(offset_of!(SegmentHeader, features_required), &spec.features_required.to_ne_bytes());
    page.put(offset_of!(SegmentHeader, size), &spec.size.to_ne_bytes());
    page.put(offset_of!(SegmentHeader, created_ns), &(now.as_nanos() as u64).to_ne_bytes());
    page.put(offset_of!(SegmentHeader, boot_id), &spec.boot_id);
    for (&base, geometry) in BLOCK_OFFSETS.iter().zip(&spec.blocks) {
        let Some(geometry) = geometry else { continue };
        page.put(base + offset_of!(Geometry, data_offset), &geometry.data_offset.to_ne_bytes());
        page.put(base + offset_of!(Geometry, capacity), &geometry.capacity.to_ne_bytes());
        page.put(base + offset_of!(Geometry, len), &geometry.len.to_ne_bytes());
        page.put(base + offset_of!(Geometry, align), &geometry.align.to_ne_bytes());
        if spec.kind != Kind::Region {
            let first = first_position(geometry.align).to_ne_bytes();
            page.put(base + offset_of!(RingBlock, tail), &first);
            page.put(base + offset_of!(RingBlock, head), &first);
        }
    }
    if let Some(geometry) = &spec.topic {
        topic::format(&mut page, geometry);
    }
    page
}

/// What a valid header page says of the segment as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) version: (u16, u16),
    pub(crate) flags: u32,
    pub(crate) features_required: u32,
    pub(crate) features_optional: u32,
    pub(crate) size: u64,
    pub(crate) created_ns: u64,
    pub(crate) boot_id: [u8; 16],
}

impl Header {
    pub(crate) fn is_persistent(&self) -> bool {
        self.flags & FLAG_PERSISTENT != 0
    }

    /// A named segment of another boot: nobody uses it and nobody may resume it.
    pub(crate) fn is_of_another_boot(&self) -> bool {
        let now = crate::sys::fs::boot_id();
        // All zero on either side: not known, so not held against it.
        self.boot_id != [0; 16] && now != [0; 16] && self.boot_id != now
    }
}

/// Where a ring's data lies: checked to be inside the segment, mappable here, and consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingGeometry {
    pub(crate) data_offset: u64,
    pub(crate) capacity: u64,
    pub(crate) align: u32,
}

/// Where a region's data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionGeometry {
    pub(crate) data_offset: u64,
    pub(crate) capacity: u64,
    /// As it was asked for, 1 ..= capacity.
    pub(crate) len: u64,
}

/// A header page that may be trusted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Valid {
    pub(crate) header: Header,
    /// By block. `None`: not a ring or bus, or this direction of the bus does not exist.
    pub(crate) rings: [Option<RingGeometry>; 2],
    pub(crate) region: Option<RegionGeometry>,
    pub(crate) topic: Option<TopicGeometry>,
}

impl Valid {
    /// Refuses a segment of another kind.
    pub(crate) fn expect_kind(&self, expected: Kind) -> Result<()> {
        if self.header.kind == expected {
            return Ok(());
        }
        let text = format!(
            "this is a {0}, expected a {1}: open it as a {0}{2}, or pick another name",
            self.header.kind.name(),
            expected.name(),
            match self.header.kind {
                Kind::Ring => " (ramway send, ramway recv)",
                Kind::Topic => " (ramway pub, ramway sub)",
                _ => "",
            }
        );
        Err(Error::new(ErrorKind::InvalidArgument, text))
    }
}

fn mismatch<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::AbiMismatch, text))
}

fn corrupt<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::Corrupt, text))
}

/// [`validate_knowing`] of everything but an RPC's bus.
pub(crate) fn validate(page: &HeaderPage, file_size: u64) -> Result<Valid> {
    validate_knowing(FEATURES_KNOWN, page, file_size)
}

/// Decides whether a header page may be trusted. `page` holds the file's first bytes (zero beyond its end),
/// `file_size` its length in bytes.
pub(crate) fn validate_knowing(features_known: u32, page: &HeaderPage, file_size: u64) -> Result<Valid> {
    if page.array::<8>(offset_of!(SegmentHeader, magic)) != MAGIC {
        return mismatch("this is not a Ramway segment (other first bytes); it is left as it is");
    }
    if file_size < HEADER_SIZE as u64 {
        return corrupt(format!("the segment is cut off after {file_size} bytes, less than its header page"));
    }
    let order = page.u32(offset_of!(SegmentHeader, byte_order));
    if order == BYTE_ORDER.swap_bytes() {
        return mismatch("the segment was made on a machine of the other byte order");
    }
    if order != BYTE_ORDER {
        return corrupt(format!("the segment's byte order mark is {order:#010x}, expected {BYTE_ORDER:#010x}"));
    }
    let version =
        (page.u16(offset_of!(SegmentHeader, version_major)), page.u16(offset_of!(SegmentHeader, version_minor)));
    if version.0 != VERSION_MAJOR {
        return mismatch(format!(
            "the segment has version {}.{} of the format, this side speaks {VERSION_MAJOR}.{VERSION_MINOR_TOPIC}",
            version.0, version.1
        ));
    }
    let features_required = page.u32(offset_of!(SegmentHeader, features_required));
    let unknown = features_required & !features_known;
    if unknown == FEATURE_RPC {
        return mismatch("the segment is an RPC's bus, which only an RPC client opens");
    }
    if unknown != 0 {
        return mismatch(format!(
            "the segment needs features {unknown:#x}, which this version of Ramway does not know: update it"
        ));
    }
    let kind = page.u32(offset_of!(SegmentHeader, kind));
    let Some(kind) = Kind::from_u32(kind) else {
        return mismatch(format!(
            "the segment is of kind {kind}, which this version of Ramway does not know: update it"
        ));
    };
    let header = Header {
        kind,
        version,
        flags: page.u32(offset_of!(SegmentHeader, flags)),
        features_required,
        features_optional: page.u32(offset_of!(SegmentHeader, features_optional)),
        size: page.u64(offset_of!(SegmentHeader, size)),
        created_ns: page.u64(offset_of!(SegmentHeader, created_ns)),
        boot_id: page.array(offset_of!(SegmentHeader, boot_id)),
    };
    if header.size != file_size {
        return corrupt(format!("the segment says that it has {} bytes, the file has {file_size}", header.size));
    }
    let mut valid = Valid { header, rings: [None; 2], region: None, topic: None };
    match kind {
        Kind::Ring => valid.rings[0] = ring(page, 0, file_size)?,
        Kind::Bus => {
            valid.rings = [ring(page, 0, file_size)?, ring(page, 1, file_size)?];
            if let [Some(a), Some(b)] = &valid.rings
                && a.data_offset < b.data_offset + b.capacity
                && b.data_offset < a.data_offset + a.capacity
            {
                return corrupt("the two rings of the bus overlap");
            }
        }
        Kind::Region => valid.region = Some(region(page, file_size)?),
        Kind::Listener => {}
        Kind::Topic => valid.topic = Some(topic::validate(page, file_size)?),
    }
    Ok(valid)
}

/// A block's data range, checked to lie inside the segment.
fn data_range(page: &HeaderPage, block: usize, file_size: u64) -> Result<(u64, u64)> {
    let base = BLOCK_OFFSETS[block];
    let data_offset = page.u64(base + offset_of!(Geometry, data_offset));
    let capacity = page.u64(base + offset_of!(Geometry, capacity));
    if !lies_in(data_offset, capacity, file_size) {
        return corrupt(format!(
            "block {block} claims {capacity} bytes at {data_offset}, which do not lie in a segment of {file_size} bytes"
        ));
    }
    let page_size = page_size() as u64;
    if capacity != 0 && !(data_offset.is_multiple_of(page_size) && capacity.is_multiple_of(page_size)) {
        return mismatch(format!(
            "the data ({capacity} bytes at {data_offset}) cannot be mapped with this machine's pages of {page_size} bytes"
        ));
    }
    Ok((data_offset, capacity))
}

/// Whether a part of a segment begins on a page behind the header page and ends inside the file.
fn lies_in(offset: u64, len: u64, file_size: u64) -> bool {
    let fits = offset.checked_add(len).is_some_and(|end| end <= file_size);
    offset >= HEADER_SIZE as u64 && offset.is_multiple_of(HEADER_SIZE as u64) && fits
}

fn ring(page: &HeaderPage, block: usize, file_size: u64) -> Result<Option<RingGeometry>> {
    let align = page.u32(BLOCK_OFFSETS[block] + offset_of!(Geometry, align));
    let is_bus = page.u32(offset_of!(SegmentHeader, kind)) == Kind::Bus as u32;
    if is_bus && page.u64(BLOCK_OFFSETS[block] + offset_of!(Geometry, capacity)) == 0 {
        return Ok(None);
    }
    let (data_offset, capacity) = data_range(page, block, file_size)?;
    if !capacity.is_power_of_two() || capacity < HEADER_SIZE as u64 {
        return corrupt(format!(
            "ring {block} has a capacity of {capacity} bytes, expected a power of two of at least a page"
        ));
    }
    if !align.is_power_of_two() || !(ALIGN_MIN..=ALIGN_MAX).contains(&align) || u64::from(align) > capacity {
        return corrupt(format!(
            "ring {block} has an alignment of {align}, expected a power of two from {ALIGN_MIN} to {ALIGN_MAX}"
        ));
    }
    Ok(Some(RingGeometry { data_offset, capacity, align }))
}

fn region(page: &HeaderPage, file_size: u64) -> Result<RegionGeometry> {
    let (data_offset, capacity) = data_range(page, 0, file_size)?;
    let len = page.u64(BLOCK_OFFSETS[0] + offset_of!(Geometry, len));
    if len == 0 || len > capacity {
        return corrupt(format!("the region claims {len} bytes in a capacity of {capacity}"));
    }
    Ok(RegionGeometry { data_offset, capacity, len })
}

#[cfg(test)]
mod tests;
