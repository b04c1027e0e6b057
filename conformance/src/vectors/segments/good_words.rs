//! Good rings: the words of the header page, the states of the roles, and bytes that nobody looks at.

use super::super::image::{
    BLOCKS, BOOT_ID, CLOSE_SEEN, CLOSED, CONSUMER, CREATED_NS, FEATURES_OPTIONAL, FENCE_FREE, FLAGS, Image, LAST_TAGS,
    LEN, MEMBARRIER_CAPABLE, PERSISTENT, PRODUCER, RESERVED, Ring, VERSION_MINOR, WAIT, number_tag, payload, run_u32,
    run_u64,
};
use super::super::model::{Class, Kind, NameAfter, Role};
use super::{List, consumer, held, leaving, producer, refused, ring_with};

pub fn add(list: &mut List) {
    header(list);
    endings(list);
    epochs(list);
    last_tags(list);
    garbage(list);
}

fn header(list: &mut List) {
    type Change = fn(&mut Image) -> &mut Image;
    let changes: [(&str, &str, Change); 7] = [
        ("ring-minor-version-7", "a later minor version: accepted", |image| image.u16(VERSION_MINOR, 7)),
        ("ring-minor-version-65535", "the largest minor version", |image| image.u16(VERSION_MINOR, 0xFFFF)),
        ("ring-optional-features", "every optional feature bit: ignored", |image| {
            image.u32(FEATURES_OPTIONAL, u32::MAX)
        }),
        ("ring-unknown-flags", "every flag but PERSISTENT: ignored", |image| image.u32(FLAGS, !PERSISTENT)),
        ("ring-persistent", "the last one out leaves the name", |image| image.u32(FLAGS, PERSISTENT)),
        ("ring-created-at-the-end-of-time", "created_ns is for people", |image| image.u64(CREATED_NS, u64::MAX)),
        ("ring-len-and-reserved", "numbers of the geometry that a ring does not use", |image| {
            image.u64(BLOCKS[0] + LEN, u64::MAX).u32(BLOCKS[0] + RESERVED, u32::MAX)
        }),
    ];
    for (name, about, change) in changes {
        let (mut image, ring) = ring_with(16, &[5, 0]);
        change(&mut image);
        let readers = vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(101), 5, "sent")];
        list.good(Kind::Ring, name, about, &image, readers);
    }
    let (mut image, _) = ring_with(16, &[5]);
    image.put(BOOT_ID, &[0xB0; 16]);
    let readers = [Role::Consumer, Role::Producer].map(|role| refused(role, "NotFound")).into();
    list.push(
        Class::Good,
        Kind::Ring,
        "ring-of-another-boot",
        "left by another boot of the machine: stale, never resumed (an opener waits for a fresh one, to its deadline)",
        &image,
        readers,
    );
}

/// What a consumer finds after the last message, by the producer's words. Nobody holds the producer's role.
fn endings(list: &mut List) {
    struct State {
        name: &'static str,
        about: &'static str,
        flags: u32,
        epoch: u32,
        seen: u32,
        end: &'static str,
    }
    let state = |name, about, flags, epoch, seen, end| State { name, about, flags, epoch, seen, end };
    let states = [
        state("closed", "closed by the producer: a close is delivered like a message", CLOSED, 3, 0, "Closed"),
        state("closed-of-an-earlier-seen", "the close that was delivered was an earlier one's", CLOSED, 3, 2, "Closed"),
        state("closed-already-seen", "this close has been delivered: wait for a successor", CLOSED, 3, 3, "TimedOut"),
        state("closed-with-every-flag", "unknown flags beside CLOSED", u32::MAX, 1, 0, "Closed"),
        state("closed-at-epoch-0", "CLOSED, but nobody has ever attached", CLOSED, 0, 0, "TimedOut"),
        state(
            "dead",
            "the producer died: its role is free and it did not close",
            MEMBARRIER_CAPABLE | FENCE_FREE,
            1,
            0,
            "PeerDead",
        ),
        state("dead-with-unknown-flags", "every flag but CLOSED", !CLOSED, 9, 0, "PeerDead"),
        state("dead-after-a-seen-close", "a close of this epoch was noted, but it is not closed", 0, 4, 4, "PeerDead"),
        state(
            "never-attached-with-flags",
            "epoch 0 is never dead, whatever the flags say",
            MEMBARRIER_CAPABLE | FENCE_FREE,
            0,
            0,
            "TimedOut",
        ),
    ];
    for state in states {
        for lengths in [&[][..], &[7, 0, 300]] {
            let (mut image, ring) = ring_with(16, lengths);
            ring.role(&mut image, PRODUCER, state.flags, state.epoch);
            ring.role(&mut image, CONSUMER, 0, 2);
            let seen = ring.block + CONSUMER + CLOSE_SEEN;
            image.u32(seen, state.seen);
            let left = if state.end == "Closed" { state.epoch } else { state.seen };
            let reader = leaving(consumer(&ring, &image, state.end), [run_u32(seen, left)]);
            let what = if lengths.is_empty() { "empty" } else { "with-messages" };
            list.good(Kind::Ring, &format!("ring-{}-{what}", state.name), state.about, &image, vec![reader]);
        }
    }
    let (mut image, ring) = ring_with(16, &[7, 0]);
    ring.role(&mut image, PRODUCER, MEMBARRIER_CAPABLE, 1);
    let readers = vec![held(consumer(&ring, &image, "TimedOut")), consumer(&ring, &image, "PeerDead")];
    let about = "a producer that has sent and says nothing: alive as long as its role's byte is locked";
    list.good(Kind::Ring, "ring-producer-alive", about, &image, readers);
    let (mut image, ring) = ring_with(16, &[7]);
    ring.role(&mut image, PRODUCER, CLOSED, 5);
    let readers = vec![held(consumer(&ring, &image, "Closed"))];
    let about = "a producer that has closed and has not let its role go yet";
    list.good(Kind::Ring, "ring-producer-closing", about, &image, readers);
    let (mut image, ring) = ring_with(16, &[100, 3952]);
    ring.role(&mut image, CONSUMER, MEMBARRIER_CAPABLE, 1);
    let readers = vec![held(producer(&ring, &image, Some(101), 0, "Full"))];
    list.good(Kind::Ring, "ring-consumer-alive", "a full ring whose consumer lives", &image, readers);
    // The producer's side: what the consumer's words say makes no difference to a send that fits.
    for (name, about, flags, epoch) in [
        ("consumer-closed", "the last consumer closed: on a named ring a send that fits succeeds", CLOSED, 1),
        ("consumer-dead", "the last consumer died: likewise", MEMBARRIER_CAPABLE, 1),
    ] {
        let (mut image, ring) = ring_with(16, &[100]);
        ring.role(&mut image, CONSUMER, flags, epoch);
        let mut readers = vec![producer(&ring, &image, Some(100), 10, "sent")];
        // Where it does not fit, the closed flag is the answer. Of a death no vector can say it: it is one from 100 ms after the
        // producer has attached on, before which the answer is Full.
        if flags & CLOSED != 0 {
            readers.push(producer(&ring, &image, Some(100), 4080, "Closed"));
        }
        list.good(Kind::Ring, &format!("ring-{name}"), about, &image, readers);
    }
}

fn epochs(list: &mut List) {
    for (name, about, mine, other) in [
        ("ring-epochs-max", "after the largest epoch comes 1, because 0 means never", u32::MAX, u32::MAX),
        ("ring-epoch-2-to-the-31", "epochs are only compared for equality", 1 << 31, 0x8000_0001),
    ] {
        let (mut image, ring) = ring_with(16, &[4]);
        ring.role(&mut image, CONSUMER, 0, mine);
        ring.role(&mut image, PRODUCER, CLOSED, other);
        let seen = run_u32(ring.block + CONSUMER + CLOSE_SEEN, other);
        let readers =
            vec![leaving(consumer(&ring, &image, "Closed"), [seen]), producer(&ring, &image, Some(100), 4, "sent")];
        list.good(Kind::Ring, name, about, &image, readers);
    }
}

/// The tag of the last published frame (section 5). What is tried to be sent is too large, so that only the attach
/// writes.
fn last_tags(list: &mut List) {
    let tail = 32 + 48;
    let cases = [
        ("first", [(tail, 7), (32, 5)], Some(7), [tail, 1], "the last tag is in record 0, the one before in record 1"),
        ("second", [(32, 5), (tail, 7)], Some(7), [1, tail], "the last tag is in record 1"),
        ("none", [(32, 5), (1, 6)], Some(0), [1, 1], "no record is the tail's: the last tag is 0"),
        ("ahead", [(tail, 7), (tail + 48, 9)], Some(7), [tail, 1], "a kill left a last-tag record ahead of the tail"),
        (
            "ahead-only",
            [(tail + 16, 9), (tail + 32, 8)],
            Some(0),
            [1, 1],
            "both last-tag records are ahead of the tail",
        ),
        ("of-2-to-the-64", [(u64::MAX - 15, 7), (tail, u64::MAX)], Some(u64::MAX), [1, tail], "a tag of all ones"),
    ];
    for (name, last_tags, last, ends, about) in cases {
        let (mut image, mut ring) = Ring::segment(4096, 16);
        ring.send(&mut image, 0, 0, &payload(0, 16));
        ring.send(&mut image, 0, 0, &payload(0, 32));
        assert_eq!(ring.tail, tail);
        for (at, (end, tag)) in LAST_TAGS.into_iter().zip(last_tags) {
            image.u64(ring.block + at, end).u64(ring.block + at + 8, tag);
        }
        let left = [0, 1].map(|i| run_u64(ring.block + LAST_TAGS[i], ends[i]));
        let reader = leaving(producer(&ring, &image, last, 5000, "TooLarge"), left);
        list.good(Kind::Ring, &format!("ring-last-tag-{name}"), about, &image, vec![reader]);
    }
    // The next frame has no tag and ends right where a stale last-tag record says that it does.
    let (mut image, mut ring) = Ring::segment(4096, 16);
    ring.send(&mut image, 0, 3, b"");
    image.u64(ring.block + LAST_TAGS[1], ring.tail + 16).u64(ring.block + LAST_TAGS[1] + 8, 0xBAD);
    let left = [run_u64(ring.block + LAST_TAGS[0], ring.tail), run_u64(ring.block + LAST_TAGS[1], 1)];
    let reader = leaving(producer(&ring, &image, Some(3), 0, "sent"), left);
    let about =
        "a stale record right where the producer's message without a tag ends: it must be forgotten at the attach";
    list.good(Kind::Ring, "ring-last-tag-ahead-then-sent", about, &image, vec![reader]);
    // What is sent with a tag goes into the last-tag record that is not the last one's.
    for first in [0, 1] {
        let (mut image, mut ring) = Ring::segment(4096, 16);
        for i in 0..=first {
            ring.send(&mut image, 0, 10 + i, b"x");
        }
        let (kept, new) = (LAST_TAGS[first as usize], LAST_TAGS[1 - first as usize]);
        let sent = number_tag(0, &payload(0, 9));
        let left = [
            run_u64(ring.block + kept, ring.tail),
            run_u64(ring.block + kept + 8, 10 + first),
            run_u64(ring.block + new, ring.tail + 32),
            run_u64(ring.block + new + 8, sent),
        ];
        let reader = leaving(producer(&ring, &image, Some(10 + first), 9, "sent"), left);
        let about = "a message with a tag overwrites the other record";
        list.good(Kind::Ring, &format!("ring-last-tag-after-{first}"), about, &image, vec![reader]);
    }
    // Garbage in the last-tag records of a ring that is at its first position.
    let (mut image, ring) = Ring::segment(4096, 16);
    image.u64(ring.block + LAST_TAGS[0] + 8, 99).u64(ring.block + LAST_TAGS[1], u64::MAX);
    let reader = leaving(producer(&ring, &image, None, 5000, "TooLarge"), [run_u64(ring.block + LAST_TAGS[1], 1)]);
    list.good(
        Kind::Ring,
        "ring-last-tag-at-first-position",
        "at the first position there is no last message",
        &image,
        vec![reader],
    );
}

fn garbage(list: &mut List) {
    let (mut image, ring) = ring_with(16, &[5, 6]);
    for at in
        [0x040, 0x3C0, 0x420, 0x460, 0x4A8, 0x4F8, 0x508, 0x570, 0x58C, 0x590, 0x610, 0x670, 0x680, 0x7F0, 0x800, 0xC00]
    {
        image.put(at, &[0xC3; 4]);
    }
    image.put(0xFF8, &[0xC3; 8]);
    list.good(
        Kind::Ring,
        "ring-garbage-in-unnamed-bytes",
        "bytes that no table names, between the words and after the block: a reader does not look at them",
        &image,
        vec![consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(101), 5, "sent")],
    );
    let (mut image, ring) = ring_with(16, &[5, 6]);
    for role in [PRODUCER, CONSUMER] {
        image.u32(ring.block + role + WAIT, 0xDEAD_BEEF);
    }
    let readers = [consumer(&ring, &image, "TimedOut"), producer(&ring, &image, Some(101), 5, "sent")];
    // A side that attaches stores 0 in both.
    let words = [PRODUCER, CONSUMER].map(|role| run_u32(ring.block + role + WAIT, 0));
    list.good(
        Kind::Ring,
        "ring-garbage-in-wait-words",
        "any value but 0 is a waiter; an attach stores 0 in the own word and wakes the other",
        &image,
        readers.into_iter().map(|reader| leaving(reader, words.clone())).collect(),
    );
    let (mut image, ring) = ring_with(16, &[]);
    ring.role(&mut image, PRODUCER, CLOSED, 5);
    image.u32(ring.block + CONSUMER + CLOSE_SEEN, 5).u32(FLAGS, PERSISTENT);
    let mut reader = consumer(&ring, &image, "TimedOut");
    reader.name_after = Some(NameAfter::Stays);
    list.good(
        Kind::Ring,
        "ring-persistent-and-finished",
        "nothing is undelivered, but the name stays",
        &image,
        vec![reader],
    );
}
