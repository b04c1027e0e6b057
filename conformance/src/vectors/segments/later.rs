//! What the other side writes after the attach, good and hostile.

use super::super::image::{
    CLOSED, CONSUMER, EPOCH, HEAD, Image, PRODUCER, ROLE_FLAGS, Ring, TAIL, WAIT, frame_header, message, payload, run,
    run_u32, run_u64,
};
use super::super::model::{Kind, Message, Reader, Run, When};
use super::{List, consumer, finding, producer, ring_with, then};

/// A frame and the position after it, as a producer publishes them.
fn published(ring: &mut Ring, tag: u64, payload: &[u8]) -> Vec<Run> {
    let frame = [&frame_header(payload.len() as u32, 6, tag)[..], payload].concat();
    let at = ring.at(ring.tail);
    ring.tail += ring.frame(payload.len() as u64);
    ring.messages.push(message(6, tag, payload));
    vec![run(at, &frame), run_u64(ring.block + TAIL, ring.tail)]
}

pub fn add_good(list: &mut List) {
    let (image, mut ring) = ring_with(16, &[5]);
    let first = published(&mut ring, 1, b"later");
    let second = published(&mut ring, 2, b"");
    list.good(
        Kind::Ring,
        "ring-then-messages",
        "two messages are published after the attach, once before and once during the wait",
        &image,
        vec![
            then(consumer(&ring, &image, "TimedOut"), When::Paused, [first.clone(), second.clone()].concat()),
            then(consumer(&ring, &image, "TimedOut"), When::Waiting, [first, second].concat()),
        ],
    );
    let (mut image, mut ring) = ring_with(16, &[5]);
    ring.role(&mut image, PRODUCER, 0, 7);
    let mut runs = published(&mut ring, 1, b"last words");
    runs.push(run_u32(ring.block + PRODUCER + ROLE_FLAGS, CLOSED));
    let reader = then(consumer(&ring, &image, "Closed"), When::Paused, runs);
    list.good(Kind::Ring, "ring-then-closed", "the producer sends, closes and goes", &image, vec![reader]);
    let (mut image, ring) = ring_with(16, &[5]);
    ring.role(&mut image, PRODUCER, 0, 7);
    let line = ring.block + PRODUCER;
    let runs = [run_u32(line + EPOCH, 8), run_u32(line + ROLE_FLAGS, !CLOSED), run_u32(line + WAIT, u32::MAX)];
    list.good(
        Kind::Ring,
        "ring-then-words-of-garbage",
        "another epoch, unknown flags and a wait word of garbage are no error; the producer is dead",
        &image,
        vec![then(consumer(&ring, &image, "PeerDead"), When::Paused, runs)],
    );
    let (image, ring) = ring_with(16, &[5]);
    let line = ring.block + CONSUMER;
    let runs = [run_u32(line + EPOCH, 99), run_u32(line + ROLE_FLAGS, !CLOSED), run_u32(line + WAIT, u32::MAX)];
    list.good(
        Kind::Ring,
        "ring-then-consumer-words-of-garbage",
        "the same of a consumer: a false waiter costs a wake-up",
        &image,
        vec![then(producer(&ring, &image, Some(100), 5, "sent"), When::Paused, runs)],
    );
    let (image, ring) = ring_with(16, &[2000, 2000]);
    let head = |value| [run_u64(ring.block + HEAD, value)];
    let left = 4096 - ring.tail;
    let reader = |len, end, at| then(producer(&ring, &image, Some(101), len, end), When::Paused, head(at));
    list.good(
        Kind::Ring,
        "ring-then-released",
        "the consumer releases after the attach: one message, both, and too little",
        &image,
        vec![reader(2000, "sent", 2016), reader(4080, "sent", ring.tail), reader(2016 + left - 15, "Full", 2016)],
    );
}

pub fn add_hostile(list: &mut List) {
    tails(list);
    heads(list);
    frames(list);
}

fn corrupt_after(image: &Image, ring: &Ring, found: &[Message], when: When, runs: Vec<Run>) -> Reader {
    finding(then(consumer(ring, image, "Corrupt"), when, runs), found)
}

fn tails(list: &mut List) {
    // Two messages are there at the attach: those are received, because `tail` is read again only after them.
    let (mut image, mut ring) = Ring::segment(4096, 16);
    ring.start(&mut image, 160);
    ring.send(&mut image, 1, 1, b"one");
    ring.send(&mut image, 2, 2, b"two");
    let (end, head) = (ring.tail, ring.head);
    let cases = [
        ("back-behind-one", end - 32, "the tail goes back to the end of the first of two messages"),
        ("back-to-head", head, "the tail goes back to where the head was"),
        ("back-behind-head", head - 32, "the tail goes back behind the head"),
        ("back-to-0", 0, "the tail goes back to 0"),
        ("jumps-past-capacity", end + 4096 + 16, "the tail jumps one step more than the capacity"),
        ("jumps-far", end + (1 << 32), "the tail jumps by 2^32"),
        ("jumps-by-2-to-the-63", end + (1 << 63), "the tail jumps by 2^63"),
        ("becomes-max", u64::MAX - 15, "the tail becomes 2^64 − 16"),
        ("unaligned", end + 8, "the tail moves by 8"),
        ("odd", end + 33, "the tail moves by 33"),
    ];
    for (name, tail, about) in cases {
        let runs = || vec![run_u64(ring.block + TAIL, tail)];
        let mut readers = vec![corrupt_after(&image, &ring, &ring.messages, When::Paused, runs())];
        if matches!(name, "back-behind-head" | "jumps-past-capacity" | "unaligned") {
            readers.push(corrupt_after(&image, &ring, &ring.messages, When::Waiting, runs()));
        }
        list.hostile(Kind::Ring, &format!("ring-then-tail-{name}"), about, &image, readers);
    }
    let (image, ring) = ring_with(64, &[5]);
    let runs = vec![run_u64(ring.block + TAIL, ring.tail + 16)];
    let about = "the tail moves by 16 at an alignment of 64";
    let readers = vec![corrupt_after(&image, &ring, &ring.messages, When::Paused, runs)];
    list.hostile(Kind::Ring, "ring-then-tail-off-at-align-64", about, &image, readers);
}

fn heads(list: &mut List) {
    // Full, so that the producer has to look at the head.
    let (mut image, mut ring) = Ring::segment(4096, 64);
    ring.start(&mut image, 4096 * 10 + 48);
    ring.send(&mut image, 1, 1, &payload(0, 2000));
    ring.send(&mut image, 1, 2, &payload(1, 2032));
    assert_eq!(ring.tail - ring.head, 4096);
    let cases = [
        ("ahead", ring.tail + 64, "the head goes ahead of the tail"),
        ("far-ahead", ring.tail + (1 << 32), "the head goes 2^32 ahead of the tail"),
        ("max", u64::MAX - 15, "the head becomes 2^64 − 16"),
        ("back", ring.head - 64, "the head goes back"),
        ("back-to-0", 48, "the head goes back to the first position"),
        ("unaligned", ring.head + 32, "the head moves by 32 at an alignment of 64"),
        ("odd", ring.head + 65, "the head moves by 65"),
    ];
    for (name, head, about) in cases {
        let reader = producer(&ring, &image, Some(2), 5, "Corrupt");
        let reader = then(reader, When::Paused, [run_u64(ring.block + HEAD, head)]);
        list.hostile(Kind::Ring, &format!("ring-then-head-{name}"), about, &image, vec![reader]);
    }
}

fn frames(list: &mut List) {
    let (image, mut ring) = ring_with(16, &[5, 5]);
    let found = vec![ring.messages[0].clone()];
    let second = ring.at(ring.head + 32);
    let runs = vec![run_u32(second, 17)];
    let reader = corrupt_after(&image, &ring, &found, When::Paused, runs);
    let about = "the producer rewrites the length of a frame that it has published";
    list.hostile(Kind::Ring, "ring-then-length-rewritten", about, &image, vec![reader]);
    let mut runs = published(&mut ring, 9, b"liar");
    runs[0] = run(ring.at(ring.tail - 32), &frame_header(0x7FFF_FFFF, 6, 9));
    ring.messages.pop();
    let readers = [When::Paused, When::Waiting]
        .map(|when| corrupt_after(&image, &ring, &ring.messages, when, runs.clone()))
        .into();
    let about = "a frame is published after the attach whose length is 2^31 − 1";
    list.hostile(Kind::Ring, "ring-then-length-past-published", about, &image, readers);
}
