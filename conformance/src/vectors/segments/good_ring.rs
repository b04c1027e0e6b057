//! Good rings: where frames lie.

use super::super::image::{BLOCKS, Image, PAGE, RING, Ring, frame_header, number_tag, payload, run};
use super::super::model::Kind;
use super::{List, consumer, leaving, producer, ring_with};

pub fn add(list: &mut List) {
    examples(list);
    aligns(list);
    wraps(list);
    fillings(list);
    positions(list);
    shapes(list);
}

/// The examples of ABI section 4.
fn examples(list: &mut List) {
    let (image, ring) = Ring::segment(4096, 16);
    // Message number 0 of 5 bytes, as the contract of the programs has it.
    let sent = payload(0, 5);
    let frame = [&frame_header(5, 0, number_tag(0, &sent))[..], &sent].concat();
    list.good(
        Kind::Ring,
        "ring-new",
        "a ring to which nobody has attached yet: never attached is not dead",
        &image,
        vec![
            consumer(&ring, &image, "TimedOut"),
            leaving(producer(&ring, &image, None, 5, "sent"), [run(ring.data, &frame)]),
        ],
    );
    for (name, align, start, about) in [
        ("ring-example-16", 16, 0, "the page's example: 'hello', then a message of length 0"),
        ("ring-example-64", 64, 48, "the same with payloads at multiples of 64"),
        (
            "ring-example-across",
            16,
            4080,
            "the same at the end of the data: a header in its last 16 bytes, the payload at its start",
        ),
    ] {
        let (mut image, mut ring) = Ring::segment(4096, align);
        ring.start(&mut image, start);
        ring.send(&mut image, 7, 0x1122_3344_5566_7788, b"hello");
        ring.send(&mut image, 8, 0, b"");
        let readers = vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(0), 5, "sent")];
        list.good(Kind::Ring, name, about, &image, readers);
    }
}

fn aligns(list: &mut List) {
    for align in (4..=12).map(|bits| 1u64 << bits) {
        let (mut image, mut ring) = Ring::segment(32_768, align);
        for (i, len) in [0, 1, 17, align - 16, align - 15].into_iter().enumerate() {
            ring.send(&mut image, i as u32, 1000 + i as u64, &payload(i as u64, len.min(100)));
        }
        let readers = vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(1004), 1, "sent")];
        let about = format!("positions ≡ {} mod {align}, payloads at multiples of {align}", align - 16);
        list.good(Kind::Ring, &format!("ring-align-{align}"), &about, &image, readers);
    }
}

fn wraps(list: &mut List) {
    for (name, start, lens, about) in [
        (
            "ring-payload-across-the-end",
            4000,
            &[200][..],
            "80 bytes of the payload before the end of the data, 120 after it",
        ),
        (
            "ring-payload-at-the-end",
            4064,
            &[16, 1],
            "a frame that ends with the last byte of the data, then one at its start",
        ),
        ("ring-empty-message-at-the-end", 4080, &[0, 0, 3], "a message of length 0 in the last 16 bytes"),
        ("ring-padding-across-the-end", 4064, &[1, 1], "a frame whose last byte of padding is the data's last byte"),
    ] {
        let (mut image, mut ring) = Ring::segment(4096, 16);
        ring.start(&mut image, start);
        for (i, &len) in lens.iter().enumerate() {
            ring.send_number(&mut image, i as u64, len);
        }
        let last = ring.messages.last().map(|message| message.tag.parse().expect("a number"));
        let readers = vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, last, 100, "sent")];
        list.good(Kind::Ring, name, about, &image, readers);
    }
    let (mut image, mut ring) = Ring::segment(8192, 1024);
    ring.start(&mut image, 8192 - 16);
    ring.send_number(&mut image, 1, 1500);
    ring.send_number(&mut image, 2, 0);
    let last = number_tag(2, &[]);
    list.good(
        Kind::Ring,
        "ring-align-1024-across-the-end",
        "a header right before the end and a payload at the start, two alignment steps long",
        &image,
        vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(last), 1, "sent")],
    );
}

fn fillings(list: &mut List) {
    for (name, align, start, about) in [
        ("ring-longest-message", 16, 0, "one message of capacity − 16 bytes fills the ring to the last byte"),
        ("ring-longest-message-across", 16, 2048, "the longest message, half of it before the end and half after"),
        (
            "ring-longest-message-align-4096",
            4096,
            4080,
            "the smallest ring with the largest alignment holds one message at a time",
        ),
    ] {
        let (mut image, mut ring) = Ring::segment(4096, align);
        ring.start(&mut image, start);
        ring.send(&mut image, 1, 77, &payload(3, 4080));
        let readers = vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(77), 0, "Full")];
        list.good(Kind::Ring, name, about, &image, readers);
    }
    let (image, ring) = ring_with(16, &[0; 256]);
    list.good(
        Kind::Ring,
        "ring-full-of-empty-messages",
        "256 messages of length 0 fill the smallest ring: tail − head = capacity",
        &image,
        vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(355), 0, "Full")],
    );
    let (image, ring) = ring_with(16, &[1000, 1000, 1000, 959]);
    let exactly = 4096 - ring.tail - 16;
    list.good(
        Kind::Ring,
        "ring-room-for-one-more",
        "the producer's message fills the ring to the last byte; one byte more is Full, not TooLarge",
        &image,
        vec![
            producer(&ring, &image, Some(103), exactly, "sent"),
            producer(&ring, &image, Some(103), exactly + 1, "Full"),
        ],
    );
    let (image, ring) = ring_with(16, &[]);
    list.good(
        Kind::Ring,
        "ring-longest-and-one-more",
        "into an empty ring fits a message of capacity − 16 bytes; one byte more never fits",
        &image,
        vec![producer(&ring, &image, None, 4080, "sent"), producer(&ring, &image, None, 4081, "TooLarge")],
    );
    let (mut image, mut ring) = Ring::segment(1 << 20, 16);
    ring.start(&mut image, (1 << 20) - 4096);
    ring.send(&mut image, 5, 6, &vec![0; 100_000]);
    list.good(
        Kind::Ring,
        "ring-long-message-across",
        "100,000 bytes of zeros, most of them after the end of the data",
        &image,
        vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(6), 0, "sent")],
    );
}

fn positions(list: &mut List) {
    let near = [
        ("ring-below-2-to-the-31", (1 << 31) - 64, 16, "positions cross 2^31"),
        ("ring-below-2-to-the-32", (1 << 32) - 64, 16, "positions cross 2^32"),
        ("ring-at-2-to-the-32", 1 << 32, 16, "positions begin at 2^32"),
        ("ring-below-2-to-the-63", (1 << 63) - 64, 16, "positions cross 2^63: differences are unsigned"),
        ("ring-below-2-to-the-64", u64::MAX - 63, 16, "positions cross 2^64 and begin again at 0"),
        ("ring-below-2-to-the-64-align-64", u64::MAX - 15, 64, "positions cross 2^64 at an alignment of 64"),
        ("ring-below-2-to-the-64-align-4096", u64::MAX - 15, 4096, "positions cross 2^64 at an alignment of 4096"),
    ];
    for (name, start, align, about) in near {
        let (mut image, mut ring) = Ring::segment(16_384, align);
        ring.start(&mut image, start);
        for i in 0..3 {
            ring.send(&mut image, 9, 200 + i, &payload(i, 40));
        }
        let readers = vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(202), 40, "sent")];
        list.good(Kind::Ring, name, about, &image, readers);
    }
    let (mut image, mut ring) = Ring::segment(4096, 16);
    ring.start(&mut image, u64::MAX - 15);
    list.good(
        Kind::Ring,
        "ring-empty-below-2-to-the-64",
        "an empty ring whose next frame crosses 2^64; the last message had no tag",
        &image,
        vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(0), 4080, "sent")],
    );
    let (mut image, mut ring) = Ring::segment(4096, 16);
    ring.start(&mut image, u64::MAX - 2047);
    ring.send(&mut image, 1, 5, &payload(1, 4080));
    list.good(
        Kind::Ring,
        "ring-full-across-2-to-the-64",
        "a full ring whose head is below 2^64 and whose tail is above 0",
        &image,
        vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(5), 0, "Full")],
    );
}

fn shapes(list: &mut List) {
    let (mut image, mut ring) = ring_with(16, &[10, 20, 30]);
    ring.release(&mut image, 2);
    list.good(
        Kind::Ring,
        "ring-some-released",
        "two of three messages have been released",
        &image,
        vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(102), 8, "sent")],
    );
    let (mut image, mut ring) = Ring::segment(4096, 16);
    for (type_id, tag) in [(0, 0), (1, 1), (0xFFFE_FFFF, 1 << 63), (0x8000_0000, u64::MAX), (7, 1 << 32)] {
        ring.send(&mut image, type_id, tag, b"x");
    }
    list.good(
        Kind::Ring,
        "ring-type-ids-and-tags",
        "the largest type id that a user has, and tags of 64 bits",
        &image,
        vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(1 << 32), 1, "sent")],
    );
    let (mut image, mut ring) = Ring::segment(4096, 16);
    ring.send(&mut image, 0xFFFF_0000, 1, b"first");
    ring.send(&mut image, 0xFFFF_FFFF, 2, b"last");
    list.good(
        Kind::Ring,
        "ring-reserved-type-ids",
        "a later version's type ids, without a required feature: received like any other",
        &image,
        vec![consumer(&ring, &image, "TimedOut")],
    );
    let (mut image, mut ring) = Ring::segment(4096, 64);
    image.put(ring.data, &[0xA5; 512]);
    for len in [0, 1, 47, 48, 49] {
        ring.send(&mut image, 3, 4, &payload(len, len));
    }
    list.good(
        Kind::Ring,
        "ring-padding-of-garbage",
        "what lies between the frames' ends and the next frames is whatever was there",
        &image,
        vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(4), 1, "sent")],
    );
    for (name, data, extra, about) in [
        (
            "ring-data-at-64-kib",
            0x1_0000,
            0,
            "made with a page of 64 KiB: garbage between the header page and the data",
        ),
        ("ring-data-at-2-mib", 0x20_0000, 0, "made with huge pages"),
        ("ring-file-longer-than-data", PAGE, 3 * PAGE, "the segment goes on after the data"),
    ] {
        let mut image = Image::header(RING, data + 4096 + extra);
        let mut ring = Ring::new(&mut image, BLOCKS[0], data, 4096, 16);
        ring.send(&mut image, 1, 2, b"far");
        if data > PAGE {
            image.put(PAGE, &[0x5A; 64]);
        }
        let readers = vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(2), 3, "sent")];
        list.good(Kind::Ring, name, about, &image, readers);
    }
    // A file of 4 GiB on paper: a tmpfs holds only what was written.
    let (image, ring) = Ring::segment(1 << 32, 16);
    list.good(
        Kind::Ring,
        "ring-of-4-gib",
        "a hole of 4 GiB: the longest message is 2^31 − 17 bytes",
        &image,
        vec![consumer(&ring, &image, "TimedOut")],
    );
}
