//! Headers that are to be refused before anything is mapped (ABI section 16), and what each reader says of them.

use super::super::image::{
    ALIGN, BLOCKS, BYTE_ORDER, DATA_OFFSET, FEATURES_REQUIRED, HEAD, Image, KIND, LEN, LISTENER, PAGE, RING, Ring,
    SIZE, TAIL, VERSION_MAJOR,
};
use super::super::model::{Kind, Role};
use super::{List, RING_CAPACITY, RING_SIZE, both_refused, geometry, refused, ring_with};

pub fn add(list: &mut List) {
    segment_header(list);
    truncated(list);
    ring_geometry(list);
    region_geometry(list);
    kinds(list);
    listeners(list);
}

type Change = fn(&mut Image) -> &mut Image;

fn segment_header(list: &mut List) {
    let changes: [(&str, &str, &str, Change); 20] = [
        ("magic-of-zeros", "AbiMismatch", "no magic", |i| i.put(0, &[0; 8])),
        ("magic-first-byte", "AbiMismatch", "another first byte", |i| i.put(0, b"r")),
        ("magic-last-byte", "AbiMismatch", "another last byte: a line feed that was translated", |i| i.put(7, b"\r")),
        ("magic-of-the-handshake", "AbiMismatch", "the handshake's magic", |i| i.put(0, b"RAMBUS\r\n")),
        ("byte-order-swapped", "AbiMismatch", "made by a machine of the other byte order", |i| {
            i.u32(BYTE_ORDER, 0x0D0C_0B0A)
        }),
        ("byte-order-swapped-with-all", "AbiMismatch", "every number in the other order", |i| {
            i.u32(BYTE_ORDER, 0x0D0C_0B0A).u16(VERSION_MAJOR, 0x0100).u32(KIND, RING.swap_bytes());
            i.u64(SIZE, RING_SIZE.swap_bytes()).u64(RING_CAPACITY, 4096u64.swap_bytes())
        }),
        ("byte-order-of-garbage", "Corrupt", "a byte order that there is not", |i| i.u32(BYTE_ORDER, 0x0B0A_0D0C)),
        ("byte-order-of-zeros", "Corrupt", "no byte order", |i| i.u32(BYTE_ORDER, 0)),
        ("major-version-0", "AbiMismatch", "a version before the first", |i| i.u16(VERSION_MAJOR, 0)),
        ("major-version-2", "AbiMismatch", "a later major version", |i| i.u16(VERSION_MAJOR, 2)),
        ("major-version-65535", "AbiMismatch", "the largest major version", |i| i.u16(VERSION_MAJOR, 0xFFFF)),
        ("required-feature-0", "AbiMismatch", "required feature bit 0, which version 1 does not know", |i| {
            i.u32(FEATURES_REQUIRED, 1)
        }),
        ("required-feature-31", "AbiMismatch", "required feature bit 31", |i| i.u32(FEATURES_REQUIRED, 1 << 31)),
        ("kind-0", "AbiMismatch", "no kind", |i| i.u32(KIND, 0)),
        ("kind-6", "AbiMismatch", "a later kind", |i| i.u32(KIND, 6)),
        ("kind-of-garbage", "AbiMismatch", "a kind of all ones", |i| i.u32(KIND, u32::MAX)),
        ("size-one-more", "Corrupt", "size = the file's length + 1", |i| i.u64(SIZE, RING_SIZE + 1)),
        ("size-one-less", "Corrupt", "size = the file's length − 1", |i| i.u64(SIZE, RING_SIZE - 1)),
        ("size-0", "Corrupt", "size = 0", |i| i.u64(SIZE, 0)),
        ("size-max", "Corrupt", "size = 2^64 − 1", |i| i.u64(SIZE, u64::MAX)),
    ];
    for (name, error, about, change) in changes {
        list.hostile(Kind::Ring, &format!("ring-{name}"), about, &geometry(change), both_refused(error));
    }
    // What comes first decides (the order of section 16).
    let both = geometry(|i| i.u32(BYTE_ORDER, 1).u16(VERSION_MAJOR, 2));
    let about = "the byte order is looked at before the version";
    list.hostile(Kind::Ring, "ring-byte-order-and-version", about, &both, both_refused("Corrupt"));
    let both = geometry(|i| i.u16(VERSION_MAJOR, 2).u64(SIZE, 1));
    let about = "the version is looked at before the size";
    list.hostile(Kind::Ring, "ring-version-and-size", about, &both, both_refused("AbiMismatch"));
}

fn truncated(list: &mut List) {
    for (len, error, about) in [
        (0, "AbiMismatch", "an empty file"),
        (1, "AbiMismatch", "one byte of the magic"),
        (7, "AbiMismatch", "all but one byte of the magic"),
        (8, "Corrupt", "only the magic: a Ramway segment that was cut off"),
        (12, "Corrupt", "cut off before the version"),
        (63, "Corrupt", "one byte less than the segment header"),
        (64, "Corrupt", "only the segment header"),
        (0x400, "Corrupt", "cut off before block 0"),
        (4095, "Corrupt", "one byte less than the header page"),
        (4096, "Corrupt", "only the header page"),
        (4097, "Corrupt", "one byte of data"),
        (RING_SIZE - 2048, "Corrupt", "cut off in the middle of the data"),
        (RING_SIZE - 1, "Corrupt", "one byte less than it says"),
        (RING_SIZE + 1, "Corrupt", "one byte more than it says"),
        (2 * RING_SIZE, "Corrupt", "twice as long as it says"),
    ] {
        let image = geometry(|i| i.resize(len));
        list.hostile(Kind::Ring, &format!("ring-file-of-{len}"), about, &image, both_refused(error));
    }
}

fn ring_geometry(list: &mut List) {
    const AT: u64 = BLOCKS[0] + DATA_OFFSET;
    const ALIGNED: u64 = BLOCKS[0] + ALIGN;
    let changes: [(&str, &str, &str, Change); 23] = [
        ("data-offset-0", "Corrupt", "data over the header page", |i| i.u64(AT, 0)),
        ("data-offset-in-the-header", "Corrupt", "data in the header page", |i| i.u64(AT, 0x800)),
        ("data-offset-unaligned", "Corrupt", "data 16 bytes after the header page, and there is room for it", |i| {
            i.resize(3 * PAGE).u64(SIZE, 3 * PAGE).u64(AT, PAGE + 16)
        }),
        ("data-offset-beyond", "Corrupt", "data after the end of the file", |i| i.u64(AT, 2 * PAGE)),
        ("data-offset-far-beyond", "Corrupt", "data at 2^40", |i| i.u64(AT, 1 << 40)),
        ("data-offset-overflows", "Corrupt", "data_offset + capacity = 2^64 = 0", |i| {
            i.u64(AT, 4096u64.wrapping_neg())
        }),
        ("data-offset-overflows-into-the-file", "Corrupt", "data_offset + capacity = 2^64 + 4096", |i| {
            i.u64(AT, 4096u64.wrapping_neg()).u64(RING_CAPACITY, 8192)
        }),
        ("data-offset-2-to-the-63", "Corrupt", "a negative number, for whoever reads it so", |i| i.u64(AT, 1 << 63)),
        ("capacity-0", "Corrupt", "a named ring has a capacity", |i| i.u64(RING_CAPACITY, 0)),
        ("capacity-3-pages", "Corrupt", "whole pages, but no power of two", |i| {
            i.resize(PAGE + 12_288).u64(SIZE, PAGE + 12_288).u64(RING_CAPACITY, 12_288)
        }),
        ("capacity-larger", "Corrupt", "twice what the file has", |i| i.u64(RING_CAPACITY, 8192)),
        ("capacity-2-to-the-32", "Corrupt", "0 in its low 32 bits", |i| i.u64(RING_CAPACITY, 1 << 32)),
        ("capacity-2-to-the-62", "Corrupt", "doubled it is 2^63", |i| i.u64(RING_CAPACITY, 1 << 62)),
        ("capacity-2-to-the-63", "Corrupt", "doubled it is 0", |i| i.u64(RING_CAPACITY, 1 << 63)),
        ("capacity-max", "Corrupt", "2^64 − 4096", |i| i.u64(RING_CAPACITY, 4096u64.wrapping_neg())),
        ("align-0", "Corrupt", "no alignment", |i| i.u32(ALIGNED, 0)),
        ("align-1", "Corrupt", "a power of two below 16", |i| i.u32(ALIGNED, 1)),
        ("align-8", "Corrupt", "less than a frame header", |i| i.u32(ALIGNED, 8)),
        ("align-24", "Corrupt", "no power of two", |i| i.u32(ALIGNED, 24)),
        ("align-48", "Corrupt", "no power of two, and positions that are right modulo 48 and under the mask 47", |i| {
            i.u32(ALIGNED, 48).u64(BLOCKS[0] + TAIL, 32).u64(BLOCKS[0] + HEAD, 32)
        }),
        ("align-8192", "Corrupt", "more than 4096, and than the capacity", |i| i.u32(ALIGNED, 8192)),
        ("align-2-to-the-31", "Corrupt", "the largest power of two", |i| i.u32(ALIGNED, 1 << 31)),
        ("align-max", "Corrupt", "all ones", |i| i.u32(ALIGNED, u32::MAX)),
    ];
    for (name, error, about, change) in changes {
        list.hostile(Kind::Ring, &format!("ring-{name}"), about, &geometry(change), both_refused(error));
    }
    let (mut image, mut ring) = Ring::segment(16_384, 16);
    ring.start(&mut image, 8192 - 16);
    image.u32(ring.block + ALIGN, 8192);
    let about = "a power of two within the capacity but more than 4096, and positions to match";
    list.hostile(Kind::Ring, "ring-align-8192-in-16384", about, &image, both_refused("Corrupt"));
    for (capacity, about) in [(16, "less than a page"), (2048, "half a page"), (4096 - 16, "not whole pages")] {
        let image = geometry(|i| i.u64(RING_CAPACITY, capacity));
        list.hostile(Kind::Ring, &format!("ring-capacity-{capacity}"), about, &image, both_refused("AbiMismatch"));
    }
}

fn region_geometry(list: &mut List) {
    let changes: [(&str, &str, &str, Change); 10] = [
        ("len-0", "Corrupt", "a region of no bytes", |i| i.u64(BLOCKS[0] + LEN, 0)),
        ("len-one-more", "Corrupt", "len = capacity + 1", |i| i.u64(BLOCKS[0] + LEN, 4097)),
        ("len-max", "Corrupt", "len = 2^64 − 1", |i| i.u64(BLOCKS[0] + LEN, u64::MAX)),
        ("len-2-to-the-32", "Corrupt", "len = 2^32 + 1, 1 in its low 32 bits", |i| {
            i.u64(BLOCKS[0] + LEN, (1 << 32) + 1)
        }),
        ("capacity-0", "Corrupt", "no data", |i| i.u64(RING_CAPACITY, 0)),
        ("capacity-larger", "Corrupt", "more than the file has", |i| i.u64(RING_CAPACITY, 8192)),
        ("capacity-max", "Corrupt", "data_offset + capacity = 2^64 = 0", |i| {
            i.u64(RING_CAPACITY, 4096u64.wrapping_neg())
        }),
        ("data-offset-0", "Corrupt", "the region is the header page", |i| i.u64(BLOCKS[0], 0)),
        ("data-offset-unaligned", "Corrupt", "the region begins at 1808, and there is room for it", |i| {
            i.resize(3 * PAGE).u64(SIZE, 3 * PAGE).u64(BLOCKS[0], 0x1808)
        }),
        ("major-version-2", "AbiMismatch", "a later major version", |i| i.u16(VERSION_MAJOR, 2)),
    ];
    for (name, error, about, change) in changes {
        let mut image = Image::region(100);
        image.put(PAGE, b"region");
        change(&mut image);
        list.hostile(Kind::Region, &format!("region-{name}"), about, &image, vec![refused(Role::Region, error)]);
    }
    for len in [0, 63, 4096, 8191] {
        let mut image = Image::region(100);
        image.resize(len);
        let error = if len == 0 { "AbiMismatch" } else { "Corrupt" };
        let about = format!("cut off after {len} bytes");
        list.hostile(
            Kind::Region,
            &format!("region-file-of-{len}"),
            &about,
            &image,
            vec![refused(Role::Region, error)],
        );
    }
}

/// Good segments, asked for as what they are not.
fn kinds(list: &mut List) {
    let (ring, _) = ring_with(16, &[5]);
    let reader = vec![refused(Role::Region, "InvalidArgument")];
    list.hostile(Kind::Region, "ring-opened-as-region", "a ring where a region is asked for", &ring, reader);
    let about = "a region where a ring is asked for";
    list.hostile(Kind::Ring, "region-opened-as-ring", about, &Image::region(100), both_refused("InvalidArgument"));
    let (bus, _) = Ring::bus([4096, 4096], [16, 16]);
    let about = "a bus's memory in a file where a ring is asked for";
    list.hostile(Kind::Ring, "bus-opened-as-ring", about, &bus, both_refused("InvalidArgument"));
    let reader = vec![refused(Role::Region, "InvalidArgument")];
    list.hostile(Kind::Region, "bus-opened-as-region", "and where a region is asked for", &bus, reader);
}

/// What is in the place of a listener's segment: a name that is taken, and left as it is.
fn listeners(list: &mut List) {
    let changes: [(&str, &str, Change); 5] = [
        ("text", "another program's file", |i| i.resize(0).put(0, b"Dear diary\n").resize(11)),
        ("cut-off", "a listener's segment that was cut off", |i| i.resize(100)),
        ("major-version-2", "a later version's", |i| i.u16(VERSION_MAJOR, 2)),
        ("size", "a size that is not the file's", |i| i.u64(SIZE, 8192)),
        ("almost-magic", "almost the magic", |i| i.put(6, b"\n\n")),
    ];
    for (name, about, change) in changes {
        let mut image = Image::header(LISTENER, PAGE);
        change(&mut image);
        let readers = vec![refused(Role::Listener, "AlreadyExists")];
        list.hostile(Kind::Listener, &format!("listener-{name}"), about, &image, readers);
    }
    let (ring, _) = ring_with(16, &[5]);
    let readers = vec![refused(Role::Listener, "AlreadyExists")];
    let about = "a ring that holds a message, in a listener's place";
    list.hostile(Kind::Listener, "listener-ring-with-a-message", about, &ring, readers);
}
