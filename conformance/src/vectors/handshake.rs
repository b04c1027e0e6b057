//! The exchanges of the bus handshake (ABI section 12), each with what the side under test must do.

use super::image::{
    BLOCKS, CLOSED, HEAD, PRODUCER, ROLE_FLAGS, Ring, TAIL, frame_header, hex, message, run, run_u32, run_u64,
};
use super::model::{
    Answer, Bytes, Class, Descriptor, Handshake, Handshakes, Memory, Message, Other, Outcome, Role, Run, Side, Step,
};

pub const MAGIC: &[u8; 8] = b"RAMBUS\r\n";
pub const HELLO: u32 = 1;
pub const WELCOME: u32 = 2;
pub const REFUSE: u32 = 3;
pub const ACK: u32 = 4;

// Section 14.
const TIMED_OUT: u32 = 8;
const CORRUPT: u32 = 12;
const ABI_MISMATCH: u32 = 13;

/// The length of the image `bus-empty`.
const BUS_EMPTY: u64 = 4096 + 2 * 4096;
const SEALS: [&str; 3] = ["shrink", "grow", "seal"];

/// A message with every field right.
pub fn bytes(kind: u32, status: u32, size: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[0x08..0x0C].copy_from_slice(&0x0A0B_0C0Du32.to_le_bytes());
    bytes[0x0C] = 1;
    bytes[0x10..0x14].copy_from_slice(&kind.to_le_bytes());
    bytes[0x14..0x18].copy_from_slice(&status.to_le_bytes());
    bytes[0x20..0x28].copy_from_slice(&size.to_le_bytes());
    bytes
}

/// Every exchange.
pub fn all() -> Handshakes {
    let mut list = Vec::new();
    listener_good(&mut list);
    listener_hostile(&mut list);
    listener_after_welcome(&mut list);
    listener_later(&mut list);
    connector_good(&mut list);
    connector_refused(&mut list);
    connector_messages(&mut list);
    connector_memory(&mut list);
    for (i, one) in list.iter().enumerate() {
        assert!(list[..i].iter().all(|other| other.name != one.name), "two exchanges are called {}", one.name);
    }
    Handshakes { format: "1.0".into(), handshakes: list }
}

type List = Vec<Handshake>;

fn send(bytes: &[u8]) -> Step {
    Step::Send(Bytes { hex: hex(bytes), descriptors: Vec::new() })
}

fn send_with(bytes: &[u8], descriptors: Vec<Descriptor>) -> Step {
    Step::Send(Bytes { hex: hex(bytes), descriptors })
}

fn receive(kind: u32, status: u32) -> Step {
    Step::Receive(Answer { kind, status })
}

/// A message with some bytes changed.
fn changed(mut message: [u8; 64], at: usize, bytes: &[u8]) -> [u8; 64] {
    message[at..at + bytes.len()].copy_from_slice(bytes);
    message
}

fn memory(image: &str, seals: &[&str]) -> Descriptor {
    let seals = seals.iter().map(|&seal| seal.into()).collect();
    Descriptor::Memory(Memory { image: image.into(), size: None, seals })
}

fn open(name: &str) -> Outcome {
    Outcome { open: name.into(), role: None, messages: Vec::new(), end: None }
}

fn received(messages: &[Message], end: &str) -> Outcome {
    Outcome { open: "ok".into(), role: Some(Role::Consumer), messages: messages.to_vec(), end: Some(end.into()) }
}

fn add(list: &mut List, class: Class, reader: Side, name: &str, about: &str, steps: Vec<Step>, outcome: Outcome) {
    let prefix = if reader == Side::Listener { "listener" } else { "connector" };
    list.push(Handshake { name: format!("{prefix}-{name}"), about: about.into(), class, reader, steps, outcome });
}

/// A connector that gets a bus and hangs up.
fn listener_good(list: &mut List) {
    let mut good = |name: &str, about: &str, steps: Vec<Step>, end: &str| {
        add(list, Class::Good, Side::Listener, name, about, steps, received(&[], end));
    };
    let (hello, ack) = (bytes(HELLO, 0, 0), bytes(ACK, 0, 0));
    let plain = |hello: &[u8], ack: &[u8]| vec![send(hello), receive(WELCOME, 0), send(ack), Step::HangUp];
    good("hello", "the page's HELLO", plain(&hello, &ack), "PeerDead");
    let later = [(0x0E, [7, 0]), (0x1C, [0xFF, 0xFF])];
    let lenient = |message| later.iter().fold(message, |message, (at, bytes)| changed(message, *at, bytes));
    let about = "a later minor version and optional features, in HELLO and in ACK: accepted";
    good("minor-version-and-options", about, plain(&lenient(hello), &lenient(ack)), "PeerDead");
    let about = "reserved bytes that are not 0: not looked at";
    let reserved = |message| changed(message, 0x28, &[0xC3; 24]);
    good("reserved-bytes", about, plain(&reserved(hello), &reserved(ack)), "PeerDead");
    let pieces = |message: &[u8; 64]| {
        [send(&message[..1]), Step::Wait(30), send(&message[1..63]), Step::Wait(30), send(&message[63..])]
    };
    let mut steps = pieces(&hello).to_vec();
    steps.push(receive(WELCOME, 0));
    steps.extend(pieces(&ack));
    steps.push(Step::HangUp);
    good("in-pieces", "HELLO and ACK come in three pieces each", steps, "PeerDead");
    let more = [&ack[..], &[0xC3; 100]].concat();
    let steps = vec![send(&hello), receive(WELCOME, 0), send(&more)];
    good("bytes-after-ack", "bytes after ACK are never read; the bus works", steps, "TimedOut");
    let steps = vec![send(&hello), receive(WELCOME, 0), send(&ack)];
    good("silent-peer", "a connector that keeps its socket and says nothing is alive", steps, "TimedOut");
}

/// What is refused with REFUSE, or left because nobody is there to be told.
fn listener_hostile(list: &mut List) {
    let hello = bytes(HELLO, 0, 0);
    let mut refused = |name: &str, about: &str, steps: Vec<Step>| {
        add(list, Class::Hostile, Side::Listener, name, about, steps, open("refused"));
    };
    let cases: [(&str, &str, [u8; 64], u32); 12] = [
        ("magic", "another magic", changed(hello, 0, b"RAMWAY\r\n"), ABI_MISMATCH),
        ("zeros", "64 bytes of 0", [0; 64], ABI_MISMATCH),
        ("ones", "64 bytes of all ones", [0xFF; 64], ABI_MISMATCH),
        ("byte-order-swapped", "the other byte order", changed(hello, 8, &[0x0A, 0x0B, 0x0C, 0x0D]), ABI_MISMATCH),
        ("major-version-2", "a later major version", changed(hello, 0x0C, &[2]), ABI_MISMATCH),
        ("major-version-0", "a version before the first", changed(hello, 0x0C, &[0]), ABI_MISMATCH),
        ("required-feature", "an unknown required feature", changed(hello, 0x18, &[1]), ABI_MISMATCH),
        ("type-0", "a message of no type", bytes(0, 0, 0), CORRUPT),
        ("type-9", "a message of an unknown type", bytes(9, 0, 0), CORRUPT),
        ("type-ack", "ACK where HELLO is due", bytes(ACK, 0, 0), CORRUPT),
        ("type-welcome", "WELCOME where HELLO is due", bytes(WELCOME, 0, 8192), CORRUPT),
        ("type-refuse", "REFUSE where HELLO is due", bytes(REFUSE, CORRUPT, 0), CORRUPT),
    ];
    for (name, about, bytes, status) in cases {
        refused(name, about, vec![send(&bytes), receive(REFUSE, status), Step::End]);
    }
    for (name, about, count) in
        [("descriptor", "a descriptor with HELLO", 1), ("descriptors", "three descriptors with HELLO", 3)]
    {
        let descriptors = vec![Descriptor::Other(Other::DevNull); count];
        refused(name, about, vec![send_with(&hello, descriptors), receive(REFUSE, CORRUPT), Step::End]);
    }
    let about = "63 bytes of HELLO and then silence";
    refused("one-byte-missing", about, vec![send(&hello[..63]), receive(REFUSE, TIMED_OUT), Step::End]);
    refused("silence", "not one byte", vec![receive(REFUSE, TIMED_OUT), Step::End]);
    refused("half-a-hello", "32 bytes and a hang-up", vec![send(&hello[..32]), Step::HangUp]);
    refused("hang-up", "a connection and a hang-up", vec![Step::HangUp]);
    refused("hello-and-hang-up", "HELLO and a hang-up, whatever comes back", vec![send(&hello), Step::HangUp]);
}

/// What follows WELCOME and is not ACK(0): the listener closes and serves the next one.
fn listener_after_welcome(list: &mut List) {
    let ack = bytes(ACK, 0, 0);
    let cases: [(&str, &str, Vec<Step>); 10] = [
        ("ack-corrupt", "the connector cannot use the memory", vec![send(&bytes(ACK, CORRUPT, 0)), Step::End]),
        ("ack-unknown-status", "ACK with an unknown error number", vec![send(&bytes(ACK, 99, 0)), Step::End]),
        ("ack-status-max", "ACK with an error number of all ones", vec![send(&bytes(ACK, u32::MAX, 0)), Step::End]),
        ("ack-magic", "ACK with another magic", vec![send(&changed(ack, 0, b"X")), Step::End]),
        ("ack-major-version", "ACK of a later major version", vec![send(&changed(ack, 0x0C, &[2])), Step::End]),
        ("ack-type-hello", "HELLO where ACK is due", vec![send(&bytes(HELLO, 0, 0)), Step::End]),
        (
            "ack-descriptor",
            "a descriptor with ACK",
            vec![send_with(&ack, vec![Descriptor::Other(Other::DevNull)]), Step::End],
        ),
        ("ack-half", "half an ACK and a hang-up", vec![send(&ack[..32]), Step::HangUp]),
        ("ack-missing", "a hang-up where ACK is due", vec![Step::HangUp]),
        ("ack-silence", "silence where ACK is due", vec![Step::End]),
    ];
    for (name, about, rest) in cases {
        let steps = [vec![send(&bytes(HELLO, 0, 0)), receive(WELCOME, 0)], rest].concat();
        add(list, Class::Hostile, Side::Listener, name, about, steps, open("refused"));
    }
}

/// What a connector writes into the memory that it was given. The listener receives over block 1, whose data follow
/// block 0's.
fn listener_later(list: &mut List) {
    let (_, [_, mut back]) = Ring::bus([4096, 4096], [16, 16]);
    let at = |offset| BLOCKS[1] + offset;
    let frame = |len: u32| run(4096 + 4096, &[&frame_header(len, 3, 4)[..], b"hello"].concat());
    back.messages = vec![message(3, 4, b"hello")];
    let hello = [send(&bytes(HELLO, 0, 0)), receive(WELCOME, 0), send(&bytes(ACK, 0, 0))];
    let mut later = |class, name: &str, about: &str, runs: Vec<Run>, hang_up: bool, messages: &[Message], end: &str| {
        let mut steps = hello.to_vec();
        steps.push(Step::Poke(runs));
        steps.extend(hang_up.then_some(Step::HangUp));
        add(list, class, Side::Listener, name, about, steps, received(messages, end));
    };
    let good = vec![frame(5), run_u64(at(TAIL), 32)];
    let about = "a message, and a hang-up without a word";
    later(Class::Good, "then-message", about, good.clone(), true, &back.messages, "PeerDead");
    let closed = [good, vec![run_u32(at(PRODUCER + ROLE_FLAGS), CLOSED)]].concat();
    let about = "a message, an orderly close, and a hang-up";
    // Its attach comes before its close: epoch 1.
    let closed = [vec![run_u32(at(PRODUCER + 8), 1)], closed].concat();
    later(Class::Good, "then-closed", about, closed, true, &back.messages, "Closed");
    for (name, about, runs) in [
        ("then-tail-unaligned", "the tail becomes 8", vec![run_u64(at(TAIL), 8)]),
        ("then-tail-beyond", "the tail goes past the capacity", vec![run_u64(at(TAIL), 4096 + 16)]),
        ("then-tail-max", "the tail becomes 2^64 − 16", vec![run_u64(at(TAIL), u64::MAX - 15)]),
        ("then-length", "a frame of 2^32 − 16 bytes", vec![frame(0xFFFF_FFF0), run_u64(at(TAIL), 32)]),
    ] {
        later(Class::Hostile, name, about, runs, false, &[], "Corrupt");
    }
    let about = "the connector also rewrites the listener's own words: at most, its own messages are lost to it";
    let runs = vec![run_u64(at(HEAD), 1 << 40), run_u64(BLOCKS[0] + TAIL, 8), frame(5), run_u64(at(TAIL), 32)];
    later(Class::Hostile, "then-own-words", about, runs, true, &back.messages, "PeerDead");
}

fn welcome(size: u64) -> [u8; 64] {
    bytes(WELCOME, 0, size)
}

fn connector_good(list: &mut List) {
    let bus = || vec![memory("bus-empty", &SEALS)];
    let mut good = |name: &str, about: &str, steps: Vec<Step>| {
        let steps = [vec![receive(HELLO, 0)], steps, vec![receive(ACK, 0), Step::HangUp]].concat();
        add(list, Class::Good, Side::Connector, name, about, steps, received(&[], "PeerDead"));
    };
    let right = welcome(BUS_EMPTY);
    good("welcome", "a WELCOME with everything right", vec![send_with(&right, bus())]);
    let later = changed(changed(right, 0x0E, &[1, 1]), 0x1C, &[0xFF; 4]);
    good("minor-version-and-options", "a later minor version and optional features", vec![send_with(&later, bus())]);
    let reserved = changed(right, 0x28, &[0xC3; 24]);
    good("reserved-bytes", "reserved bytes that are not 0", vec![send_with(&reserved, bus())]);
    let pieces =
        vec![send_with(&right[..1], bus()), Step::Wait(30), send(&right[1..40]), Step::Wait(30), send(&right[40..])];
    good("in-pieces", "WELCOME in three pieces, the descriptor with its first byte", pieces);
}

fn connector_refused(list: &mut List) {
    let names: [(u32, &str); 11] = [
        (4, "Busy"),
        (12, "Corrupt"),
        (13, "AbiMismatch"),
        (14, "PermissionDenied"),
        (15, "NoSpace"),
        (17, "Unsupported"),
        (18, "Os"),
        (0, "Os"),
        (99, "Os"),
        (0x1_0000 + 15, "Os"),
        (u32::MAX, "Os"),
    ];
    for (status, name) in names {
        let known = (1..=18).contains(&status);
        let about =
            if known { format!("the listener refuses: {name}") } else { format!("an unknown error number, {status}") };
        let class = if known { Class::Good } else { Class::Hostile };
        let steps = vec![receive(HELLO, 0), send(&bytes(REFUSE, status, 0)), Step::End];
        add(list, class, Side::Connector, &format!("refused-{status}"), &about, steps, open(name));
    }
    let later = changed(bytes(REFUSE, 15, 0), 0x0C, &[2]);
    let about = "a later major version's REFUSE: its status is where it is in every version";
    let steps = vec![receive(HELLO, 0), send(&later), Step::End];
    add(list, Class::Good, Side::Connector, "refused-by-a-later-version", about, steps, open("NoSpace"));
}

/// What is wrong before the memory is looked at.
fn connector_messages(list: &mut List) {
    let right = welcome(BUS_EMPTY);
    let bus = || vec![memory("bus-empty", &SEALS)];
    let mut wrong = |name: &str, about: &str, steps: Vec<Step>, error: &str| {
        let steps = [vec![receive(HELLO, 0)], steps].concat();
        add(list, Class::Hostile, Side::Connector, name, about, steps, open(error));
    };
    let cases: [(&str, &str, [u8; 64], &str); 10] = [
        ("magic", "another magic", changed(right, 0, b"RAMWAY\r\n"), "AbiMismatch"),
        ("zeros", "64 bytes of 0", [0; 64], "AbiMismatch"),
        ("byte-order-swapped", "the other byte order", changed(right, 8, &[0x0A, 0x0B, 0x0C, 0x0D]), "AbiMismatch"),
        ("major-version-2", "a later major version", changed(right, 0x0C, &[2]), "AbiMismatch"),
        ("major-version-0", "a version before the first", changed(right, 0x0C, &[0]), "AbiMismatch"),
        ("required-feature", "an unknown required feature", changed(right, 0x18, &[1]), "AbiMismatch"),
        ("type-hello", "HELLO where WELCOME is due", bytes(HELLO, 0, BUS_EMPTY), "Corrupt"),
        ("type-ack", "ACK where WELCOME is due", bytes(ACK, 0, BUS_EMPTY), "Corrupt"),
        ("type-0", "a message of no type", bytes(0, 0, BUS_EMPTY), "Corrupt"),
        ("type-9", "a message of an unknown type", bytes(9, 0, BUS_EMPTY), "Corrupt"),
    ];
    for (name, about, bytes, error) in cases {
        wrong(name, about, vec![send_with(&bytes, bus()), Step::End], error);
    }
    wrong("no-descriptor", "WELCOME without a descriptor", vec![send(&right), Step::End], "Corrupt");
    let two = || [bus(), bus()].concat();
    wrong("two-descriptors", "WELCOME with two descriptors", vec![send_with(&right, two()), Step::End], "Corrupt");
    let halves = vec![send_with(&right[..1], bus()), send_with(&right[1..], bus()), Step::End];
    wrong("a-descriptor-with-each-half", "one with the first byte and one with the others", halves, "Corrupt");
    let half = vec![send_with(&right[..32], bus()), Step::HangUp];
    wrong("half-a-welcome", "32 bytes of WELCOME and a hang-up", half, "PeerDead");
    let half = vec![send(&right[..63]), Step::HangUp];
    wrong("one-byte-missing", "63 bytes of WELCOME and a hang-up", half, "PeerDead");
}

/// What is wrong with the memory: the listener is told with ACK.
fn connector_memory(list: &mut List) {
    let mut wrong = |name: &str, about: &str, size: u64, descriptor: Descriptor| {
        let steps =
            vec![receive(HELLO, 0), send_with(&welcome(size), vec![descriptor]), receive(ACK, CORRUPT), Step::End];
        add(list, Class::Hostile, Side::Connector, name, about, steps, open("Corrupt"));
    };
    wrong("dev-null", "/dev/null instead of memory", BUS_EMPTY, Descriptor::Other(Other::DevNull));
    let about = "a regular file on a tmpfs, which nobody can seal";
    wrong("regular-file", about, BUS_EMPTY, Descriptor::Other(Other::RegularFile));
    let seals: [(&str, &str, &[&str]); 6] = [
        ("unsealed", "a memfd without a seal", &[]),
        ("can-shrink", "a memfd that can shrink", &["grow", "seal"]),
        ("can-grow", "a memfd that can grow", &["shrink", "seal"]),
        ("can-be-sealed", "a memfd that can be sealed further", &["shrink", "grow"]),
        ("sealed-against-writing", "a memfd that nobody can write", &["shrink", "grow", "seal", "write"]),
        (
            "sealed-against-future-writing",
            "a memfd that cannot be mapped for writing",
            &["shrink", "grow", "seal", "future_write"],
        ),
    ];
    for (name, about, seals) in seals {
        wrong(name, about, BUS_EMPTY, memory("bus-empty", seals));
    }
    for (name, about, size) in [
        ("announced-0", "WELCOME says 0 bytes", 0),
        ("announced-more", "WELCOME says a page more than the memory has", BUS_EMPTY + 4096),
        ("announced-max", "WELCOME says 2^64 − 1 bytes", u64::MAX),
        ("announced-in-64-bits", "WELCOME says 2^32 more", BUS_EMPTY + (1 << 32)),
    ] {
        wrong(name, about, size, memory("bus-empty", &SEALS));
    }
    for (name, about, size) in [
        ("header-says-less", "memory and WELCOME agree on a page more than the header says", BUS_EMPTY + 4096),
        ("header-says-more", "memory and WELCOME agree on a page less than the header says", BUS_EMPTY - 4096),
        ("shorter-than-a-header", "memory and WELCOME agree on 64 bytes", 64),
    ] {
        let seals = SEALS.map(String::from).to_vec();
        let descriptor = Descriptor::Memory(Memory { image: "bus-empty".into(), size: Some(size), seals });
        wrong(name, about, size, descriptor);
    }
}
