//! Memory that a listener sends and no connector may accept, and what a listener does to it later.

use super::super::image::{
    ALIGN, BLOCKS, BOOT_ID, BYTE_ORDER, CAPACITY, DATA_OFFSET, FEATURES_REQUIRED, HEAD, Image, KIND, LISTENER, PAGE,
    REGION, RING, Ring, SIZE, TAIL, VERSION_MAJOR, frame_header, run, run_u64,
};
use super::super::model::{Kind, Role, When};
use super::good_bus::listener_attached;
use super::{List, consumer, producer, refused, then};

pub fn add(list: &mut List) {
    headers(list);
    geometry(list);
    later(list);
}

type Change = fn(&mut Image) -> &mut Image;

fn bus() -> (Image, [Ring; 2]) {
    let (mut image, rings) = Ring::bus([8192, 8192], [16, 16]);
    listener_attached(&mut image, &rings);
    (image, rings)
}

fn refuse(list: &mut List, cases: &[(&str, &str, &str, Change)]) {
    for (name, error, about, change) in cases {
        let (mut image, _) = bus();
        change(&mut image);
        list.hostile(Kind::Bus, &format!("bus-{name}"), about, &image, vec![refused(Role::Consumer, error)]);
    }
}

fn headers(list: &mut List) {
    refuse(
        list,
        &[
            ("magic", "AbiMismatch", "another magic", |i| i.put(0, b"RAMBUS\r\n")),
            ("byte-order-swapped", "AbiMismatch", "the other byte order", |i| i.u32(BYTE_ORDER, 0x0D0C_0B0A)),
            ("byte-order-of-garbage", "Corrupt", "no byte order", |i| i.u32(BYTE_ORDER, 1)),
            ("major-version-2", "AbiMismatch", "a later major version", |i| i.u16(VERSION_MAJOR, 2)),
            ("required-feature", "AbiMismatch", "an unknown required feature", |i| i.u32(FEATURES_REQUIRED, 1 << 7)),
            ("kind-9", "AbiMismatch", "an unknown kind", |i| i.u32(KIND, 9)),
            ("kind-ring", "Corrupt", "a ring where a bus was agreed on", |i| i.u32(KIND, RING)),
            ("kind-region", "Corrupt", "a region where a bus was agreed on", |i| {
                i.u32(KIND, REGION).u64(BLOCKS[0] + 0x10, 100)
            }),
            ("kind-listener", "Corrupt", "a listener's segment where a bus was agreed on", |i| i.u32(KIND, LISTENER)),
            ("size-of-header", "Corrupt", "the header's size is not the memory's", |i| i.u64(SIZE, PAGE + 8192)),
            ("cut-off-in-data", "Corrupt", "the memory ends in the middle of block 1's data", |i| {
                i.resize(PAGE + 8192 + 4096)
            }),
            ("cut-off-after-header", "Corrupt", "the memory is a header page", |i| i.resize(PAGE)),
            ("cut-off-in-header", "Corrupt", "the memory is less than a header page", |i| i.resize(2048)),
            ("empty-memory", "Corrupt", "no memory at all", |i| i.resize(0)),
        ],
    );
    let (mut image, rings) = bus();
    image.put(BOOT_ID, &[0xB0; 16]);
    let readers = vec![consumer(&rings[0], &image, "TimedOut")];
    list.good(Kind::Bus, "bus-boot-id", "memory without a name has no boot id, and none is looked at", &image, readers);
}

fn geometry(list: &mut List) {
    const A: u64 = BLOCKS[0];
    const B: u64 = BLOCKS[1];
    refuse(
        list,
        &[
            ("data-over-header", "Corrupt", "block 0's data is the header page", |i| i.u64(A + DATA_OFFSET, 0)),
            ("data-unaligned", "Corrupt", "block 1's data begins at 3010, and there is room for it", |i| {
                i.resize(0x6000).u64(SIZE, 0x6000).u64(B + DATA_OFFSET, 0x3010)
            }),
            ("data-beyond", "Corrupt", "block 1's data ends after the memory", |i| i.u64(B + DATA_OFFSET, 0x4000)),
            ("data-overflows", "Corrupt", "data_offset + capacity = 2^64", |i| i.u64(B, 8192u64.wrapping_neg())),
            ("data-overlaps", "Corrupt", "the two areas overlap by a page", |i| i.u64(B + DATA_OFFSET, 0x2000)),
            ("data-the-same", "Corrupt", "both blocks have the same data", |i| i.u64(B + DATA_OFFSET, 0x1000)),
            ("data-inside-the-other", "Corrupt", "block 1's data lies inside of block 0's", |i| {
                i.u64(B + DATA_OFFSET, 0x2000).u64(B + CAPACITY, 4096)
            }),
            ("data-around-the-other", "Corrupt", "block 0's data lies inside of block 1's", |i| {
                i.u64(A + DATA_OFFSET, 0x2000)
                    .u64(A + CAPACITY, 4096)
                    .u64(B + DATA_OFFSET, 0x1000)
                    .u64(B + CAPACITY, 16_384)
            }),
            ("capacity-3-pages", "Corrupt", "no power of two", |i| {
                i.u64(A + CAPACITY, 12_288).u64(B + DATA_OFFSET, 0x4000).u64(B + CAPACITY, 4096)
            }),
            ("capacity-larger", "Corrupt", "block 0's data would be more than the memory", |i| {
                i.u64(A + CAPACITY, 1 << 40)
            }),
            ("capacity-half-a-page", "AbiMismatch", "not whole pages", |i| i.u64(B + CAPACITY, 2048)),
            ("align-48", "Corrupt", "no power of two, and positions to match", |i| {
                i.u32(A + ALIGN, 48).u64(A + TAIL, 32).u64(A + HEAD, 32)
            }),
            ("align-0-of-block-1", "Corrupt", "no alignment", |i| i.u32(B + ALIGN, 0)),
            ("align-8192", "Corrupt", "more than 4096, and positions to match", |i| {
                i.u32(B + ALIGN, 8192).u64(B + TAIL, 8176).u64(B + HEAD, 8176)
            }),
            ("no-direction", "Corrupt", "both capacities are 0", |i| i.u64(A + CAPACITY, 0).u64(B + CAPACITY, 0)),
            ("tail-unaligned", "Corrupt", "block 0's tail is 8", |i| i.u64(A + TAIL, 8)),
            ("tail-beyond", "Corrupt", "block 1's tail is a capacity and 16 ahead", |i| i.u64(B + TAIL, 8192 + 16)),
            ("head-ahead", "Corrupt", "block 0's head is ahead of its tail", |i| i.u64(A + HEAD, 16)),
            ("head-off", "Corrupt", "block 1's positions are no multiples of 16", |i| {
                i.u64(B + HEAD, 4).u64(B + TAIL, 4)
            }),
        ],
    );
}

/// After the connector has accepted.
fn later(list: &mut List) {
    let (mut image, mut rings) = bus();
    rings[0].send(&mut image, 1, 2, b"good");
    let at = rings[0].block + TAIL;
    let tail = rings[0].tail;
    for (name, value, about) in [
        ("jumps", tail + 8192 + 16, "the tail jumps past the capacity"),
        ("back", tail - 32, "the tail goes back to the head"),
        ("unaligned", tail + 1, "the tail moves by 1"),
    ] {
        let readers = [When::Paused, When::Waiting]
            .map(|when| then(consumer(&rings[0], &image, "Corrupt"), when, [run_u64(at, value)]))
            .into();
        list.hostile(Kind::Bus, &format!("bus-then-tail-{name}"), about, &image, readers);
    }
    let runs = [run(rings[0].at(tail), &frame_header(u32::MAX, 0, 0)), run_u64(at, tail + 16)];
    let reader = then(consumer(&rings[0], &image, "Corrupt"), When::Waiting, runs);
    list.hostile(Kind::Bus, "bus-then-length", "a frame of 2^32 − 1 bytes is published", &image, vec![reader]);
    // The geometry is read once: what it becomes later is nobody's business.
    let runs =
        [run_u64(BLOCKS[0] + DATA_OFFSET, 0), run_u64(BLOCKS[0] + CAPACITY, u64::MAX), run_u64(BLOCKS[0] + ALIGN, 0)];
    let reader = then(consumer(&rings[0], &image, "TimedOut"), When::Paused, runs);
    let about = "the geometry is rewritten after it was read: it is never read again";
    list.hostile(Kind::Bus, "bus-then-geometry", about, &image, vec![reader]);
    let runs = [run_u64(0, 0), run_u64(SIZE, 0), run_u64(KIND, u64::MAX)];
    let readers = vec![then(producer(&rings[1], &image, None, 100, "sent"), When::Paused, runs)];
    list.hostile(Kind::Bus, "bus-then-header", "the segment header is rewritten after it was read", &image, readers);
    // Full in the connector's direction.
    let (mut image, mut rings) = bus();
    rings[1].send(&mut image, 0, 5, &[1; 8176]);
    let (tail, head) = (rings[1].tail, rings[1].head);
    for (name, value, about) in [
        ("ahead", tail + 16, "the head goes ahead of the tail"),
        ("back", head.wrapping_sub(16), "the head goes back below 0"),
        ("unaligned", head + 8, "the head moves by 8"),
    ] {
        let reader = producer(&rings[1], &image, Some(5), 0, "Corrupt");
        let reader = then(reader, When::Paused, [run_u64(rings[1].block + HEAD, value)]);
        list.hostile(Kind::Bus, &format!("bus-then-head-{name}"), about, &image, vec![reader]);
    }
}
