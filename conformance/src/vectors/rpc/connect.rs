//! The handshake of an RPC's bus: a `listener` is a server that allows 16 calls in flight, a `connector` a client.

use super::super::handshake::{ACK, HELLO, REFUSE, WELCOME, bytes};
use super::super::image::{FEATURES_REQUIRED, Ring, hex};
use super::super::model::{Answer, Bytes, Class, Descriptor, Handshake, Kind, Memory, Outcome, Segment, Side, Step};
use super::{BUS, CAPACITY, FEATURE};

const ABI_MISMATCH: u32 = 13;
const CORRUPT: u32 = 12;
const SEALS: [&str; 3] = ["shrink", "grow", "seal"];
const SIZE: u64 = 4096 + 2 * CAPACITY;

/// HELLO and WELCOME with these required features, WELCOME with this limit.
pub fn message(kind: u32, features: u32, size: u64, max_in_flight: u32) -> [u8; 64] {
    let mut bytes = bytes(kind, 0, size);
    bytes[0x18..0x1C].copy_from_slice(&features.to_le_bytes());
    bytes[0x28..0x2C].copy_from_slice(&max_in_flight.to_le_bytes());
    bytes
}

fn image(name: &str, about: &str, class: Class, capacities: [u64; 2], features: u32) -> Segment {
    let (mut image, _) = Ring::bus(capacities, [16, 16]);
    image.u32(FEATURES_REQUIRED, features);
    let (size, bytes) = (4096 + capacities[0] + capacities[1], image.runs());
    Segment { name: name.into(), about: about.into(), class, kind: Kind::Bus, size, bytes, readers: Vec::new() }
}

/// The memory that a client is sent.
pub fn images() -> Vec<Segment> {
    let both = [CAPACITY; 2];
    vec![
        image(BUS, "the bus of an RPC, empty", Class::Good, both, FEATURE),
        image("rpc-plain", "a plain bus", Class::Hostile, both, 0),
        image("rpc-features-3", "with one required feature more", Class::Hostile, both, 3),
        image("rpc-features-2", "with another required feature in its place", Class::Hostile, both, 2),
        image("rpc-no-replies", "without the ring to the client", Class::Hostile, [0, CAPACITY], FEATURE),
        image("rpc-no-calls", "without the ring to the server", Class::Hostile, [CAPACITY, 0], FEATURE),
    ]
}

fn send(bytes: &[u8]) -> Step {
    Step::Send(Bytes { hex: hex(bytes), descriptors: Vec::new() })
}

fn welcome(bytes: &[u8], image: &str) -> Step {
    let seals = SEALS.map(String::from).to_vec();
    let descriptor = Descriptor::Memory(Memory { image: image.into(), size: None, seals });
    Step::Send(Bytes { hex: hex(bytes), descriptors: vec![descriptor] })
}

fn receive(kind: u32, status: u32) -> Step {
    Step::Receive(Answer { kind, status })
}

fn opens(name: &str) -> Outcome {
    Outcome { open: name.into(), role: None, messages: Vec::new(), end: None }
}

/// Every handshake.
pub fn all() -> Vec<Handshake> {
    let mut list = Vec::new();
    servers(&mut list);
    clients(&mut list);
    list
}

fn servers(list: &mut Vec<Handshake>) {
    let mut add = |class, name: &str, about: &str, steps: Vec<Step>, open: &str| {
        let (name, about) = (format!("server-{name}"), about.into());
        list.push(Handshake { name, about, class, reader: Side::Listener, steps, outcome: opens(open) });
    };
    let served = |hello: &[u8]| vec![send(hello), receive(WELCOME, 0), send(&bytes(ACK, 0, 0))];
    let right = message(HELLO, FEATURE, 0, 0);
    let about = "HELLO with the feature, and WELCOME with it and the limit of calls in flight";
    add(Class::Good, "hello", about, served(&right), "ok");
    let mut options = message(HELLO, FEATURE, 0, 9);
    options[0x0E] = 7;
    options[0x1C..0x20].fill(0xFF);
    options[0x2C..].fill(0xC3);
    let about = "a later minor version, optional features and reserved bytes that are not 0: accepted";
    add(Class::Good, "hello-options", about, served(&options), "ok");
    for (features, about) in [
        (0, "HELLO of a plain connector"),
        (2, "HELLO with another required feature in its place"),
        (3, "HELLO with one required feature more"),
        (u32::MAX, "HELLO with all features"),
    ] {
        let steps = vec![send(&message(HELLO, features, 0, 0)), receive(REFUSE, ABI_MISMATCH), Step::End];
        add(Class::Hostile, &format!("hello-features-{features:x}"), about, steps, "refused");
    }
    let steps = vec![send(&message(WELCOME, FEATURE, 0, 1)), receive(REFUSE, CORRUPT), Step::End];
    add(Class::Hostile, "hello-type", "WELCOME where HELLO is due", steps, "refused");
    let steps = vec![send(&right), receive(WELCOME, 0), send(&bytes(ACK, CORRUPT, 0)), Step::End];
    add(Class::Hostile, "ack-corrupt", "the client cannot use the memory", steps, "refused");
}

fn clients(list: &mut Vec<Handshake>) {
    let mut add = |class, name: &str, about: &str, steps: Vec<Step>, open: &str| {
        let (name, about) = (format!("client-{name}"), about.into());
        let steps = [vec![receive(HELLO, 0)], steps].concat();
        list.push(Handshake { name, about, class, reader: Side::Connector, steps, outcome: opens(open) });
    };
    let right = message(WELCOME, FEATURE, SIZE, 16);
    let good = |bytes: &[u8]| vec![welcome(bytes, BUS), receive(ACK, 0)];
    add(Class::Good, "welcome", "a WELCOME with everything right", good(&right), "ok");
    for limit in [1, u32::MAX] {
        let about = format!("{limit} calls may be in flight");
        let steps = good(&message(WELCOME, FEATURE, SIZE, limit));
        add(Class::Good, &format!("welcome-limit-{limit}"), &about, steps, "ok");
    }
    let mut options = right;
    options[0x0E] = 7;
    options[0x1C..0x20].fill(0xFF);
    options[0x2C..].fill(0xC3);
    let about = "a later minor version, optional features and reserved bytes that are not 0";
    add(Class::Good, "welcome-options", about, good(&options), "ok");
    let refused = vec![send(&bytes(REFUSE, ABI_MISMATCH, 0)), Step::End];
    add(Class::Good, "refused", "a plain listener refuses HELLO", refused, "AbiMismatch");
    let busy = vec![send(&bytes(REFUSE, 4, 0)), Step::End];
    add(Class::Good, "refused-busy", "a server that has as many clients as it may have", busy, "Busy");
    for (features, about) in [
        (0, "WELCOME of a plain listener"),
        (2, "WELCOME with another required feature in its place"),
        (3, "WELCOME with one required feature more"),
    ] {
        let steps = vec![welcome(&message(WELCOME, features, SIZE, 16), BUS), Step::End];
        add(Class::Hostile, &format!("welcome-features-{features}"), about, steps, "AbiMismatch");
    }
    let steps = vec![welcome(&message(WELCOME, FEATURE, SIZE, 0), BUS), Step::End];
    add(Class::Hostile, "welcome-limit-0", "no call may be in flight", steps, "Corrupt");
    for (image, status, error) in [
        ("rpc-plain", ABI_MISMATCH, "AbiMismatch"),
        ("rpc-features-2", ABI_MISMATCH, "AbiMismatch"),
        ("rpc-features-3", ABI_MISMATCH, "AbiMismatch"),
        ("rpc-no-replies", CORRUPT, "Corrupt"),
        ("rpc-no-calls", CORRUPT, "Corrupt"),
    ] {
        let size = images().iter().find(|one| one.name == image).map_or(SIZE, |one| one.size);
        let steps = vec![welcome(&message(WELCOME, FEATURE, size, 16), image), receive(ACK, status), Step::End];
        let about = format!("the memory is the image {image}");
        add(Class::Hostile, &format!("memory-{}", &image[4..]), &about, steps, error);
    }
}
