//! Positions and frames that no correct producer writes: every reader says `Corrupt`.

use super::super::image::{Image, Ring, payload};
use super::super::model::Kind;
use super::{List, both_refused, consumer, ring_with};

pub fn add(list: &mut List) {
    positions(list);
    lengths(list);
    lengths_at_alignments(list);
}

/// At the attach, for both roles.
fn positions(list: &mut List) {
    let cases: [(&str, u64, u64, u64, &str); 15] = [
        ("tail-unaligned", 16, 8, 0, "a tail that is no multiple of 16"),
        ("tail-odd", 16, 33, 0, "an odd tail"),
        ("head-unaligned", 16, 64, 8, "a head that is no multiple of 16"),
        ("both-unaligned", 16, 24, 24, "equal, and equally unaligned"),
        ("both-0-at-align-64", 64, 0, 0, "0 is where no frame begins at an alignment of 64"),
        ("both-align-at-align-64", 64, 64, 64, "payload and frame taken for each other"),
        ("tail-off-at-align-64", 64, 64, 48, "a multiple of 16, but not ≡ 48 mod 64"),
        ("off-at-align-4096", 4096, 4096, 4080, "≡ 0 instead of 4080"),
        ("tail-beyond-capacity", 16, 4096 + 16, 0, "tail − head = capacity + 16"),
        ("tail-far-beyond", 16, 1 << 32, 0, "tail − head = 2^32: 0 in its low 32 bits"),
        ("tail-2-to-the-63", 16, 1 << 63, 0, "tail − head = 2^63"),
        ("head-ahead", 16, 32, 48, "the head is 16 ahead of the tail"),
        ("head-far-ahead", 16, 0, 1 << 40, "the head is 2^40 ahead"),
        ("head-ahead-by-a-capacity", 16, 0, 4096, "the head is a capacity ahead"),
        ("head-ahead-across-2-to-the-64", 16, u64::MAX - 15, 16, "tail − head wraps around: head is 32 ahead"),
    ];
    for (name, align, tail, head, about) in cases {
        let (mut image, ring) = ring_with(align, &[]);
        set(&mut image, &ring, tail, head);
        list.hostile(Kind::Ring, &format!("ring-{name}"), about, &image, both_refused("Corrupt"));
    }
}

fn set(image: &mut Image, ring: &Ring, tail: u64, head: u64) {
    image.u64(ring.block + super::super::image::TAIL, tail).u64(ring.block + super::HEAD, head);
}

/// One good message, then a frame with this length in what is published of the ring.
fn lengths(list: &mut List) {
    let cases: [(&str, u64, u32, &str); 14] = [
        ("one-past-published", 64, 49, "a frame that takes 80 bytes where 64 are published"),
        ("past-published-by-its-padding", 16, 1, "16 bytes published: only a message of length 0 fits"),
        ("past-published-in-capacity", 64, 1000, "within the capacity, but past what is published"),
        ("capacity", 64, 4096, "as long as the capacity"),
        ("longest", 64, 4080, "the ring's longest message, of which 64 bytes are published"),
        ("past-capacity", 4048, 4081, "longer than the ring's longest message"),
        ("2-to-the-31-less-17", 64, (1 << 31) - 17, "2^31 − 17, the longest message of all rings"),
        ("2-to-the-31-less-16", 64, (1 << 31) - 16, "2^31 − 16"),
        ("2-to-the-31", 64, 1 << 31, "negative as a signed number"),
        ("2-to-the-32-less-32", 64, 0xFFFF_FFE0, "16 + len = 2^32 − 16"),
        ("2-to-the-32-less-16", 64, 0xFFFF_FFF0, "16 + len = 2^32: 0 in 32 bits"),
        ("2-to-the-32-less-15", 64, 0xFFFF_FFF1, "16 + len = 1 in 32 bits: a frame of 16 bytes"),
        ("max", 64, u32::MAX, "16 + len = 15 in 32 bits"),
        ("max-in-a-full-ring", 4048, u32::MAX, "the same with all of the ring published"),
    ];
    for (name, published, len, about) in cases {
        let (mut image, mut ring) = ring_with(16, &[20]);
        // 48 bytes are taken by the good message, so that up to 4048 can follow.
        ring.header_at(&mut image, ring.tail, len, 1, 1);
        ring.tail += published;
        set(&mut image, &ring, ring.tail, ring.head);
        list.hostile(
            Kind::Ring,
            &format!("ring-length-{name}"),
            about,
            &image,
            vec![consumer(&ring, &image, "Corrupt")],
        );
    }
    // The first frame of all.
    let (mut image, mut ring) = ring_with(16, &[]);
    ring.header_at(&mut image, 0, 17, 1, 1);
    ring.tail = 32;
    set(&mut image, &ring, 32, 0);
    let about = "the first frame is longer than what is published";
    list.hostile(Kind::Ring, "ring-length-of-the-first", about, &image, vec![consumer(&ring, &image, "Corrupt")]);
    // Where the frame lies across the end of the data.
    let (mut image, mut ring) = Ring::segment(4096, 16);
    ring.start(&mut image, 4080);
    ring.header_at(&mut image, 4080, 4081, 1, 1);
    ring.tail = 4080 + 4096;
    set(&mut image, &ring, ring.tail, ring.head);
    let about = "a full ring, and a frame across the end that is one byte too long";
    list.hostile(Kind::Ring, "ring-length-across-the-end", about, &image, vec![consumer(&ring, &image, "Corrupt")]);
    // More than 2^31 bytes are published, so that only the limit on messages refuses it. The file is a hole.
    for (name, len, about) in [
        ("over-the-limit-in-4-gib", (1 << 31) - 16, "2^31 − 16 bytes, and more than that are published"),
        ("max-in-8-gib", u32::MAX, "2^32 − 1 bytes, and more than that are published"),
    ] {
        let (mut image, mut ring) = Ring::segment(if len == u32::MAX { 1 << 33 } else { 1 << 32 }, 16);
        ring.header_at(&mut image, 0, len, 1, 1);
        ring.tail = ring.capacity;
        set(&mut image, &ring, ring.tail, 0);
        list.hostile(
            Kind::Ring,
            &format!("ring-length-{name}"),
            about,
            &image,
            vec![consumer(&ring, &image, "Corrupt")],
        );
    }
}

fn lengths_at_alignments(list: &mut List) {
    for align in [64, 4096] {
        for (name, len, about) in [
            ("one-past", align as u32 - 15, "the frame takes one alignment step more than is published"),
            ("wraps", 0u32.wrapping_sub(align as u32), "16 + len rounded up is 0 in 32 bits"),
        ] {
            let (mut image, mut ring) = Ring::segment(16_384, align);
            ring.send(&mut image, 1, 1, &payload(0, 1));
            ring.header_at(&mut image, ring.tail, len, 1, 1);
            ring.tail += align;
            set(&mut image, &ring, ring.tail, ring.head);
            let name = format!("ring-length-{name}-at-align-{align}");
            list.hostile(Kind::Ring, &name, about, &image, vec![consumer(&ring, &image, "Corrupt")]);
        }
    }
}
