//! The segment images, each with what its readers must find.

mod good_bus;
mod good_region;
mod good_ring;
mod good_words;
mod hostile_bus;
mod hostile_header;
mod hostile_ring;
mod later;

use super::image::{
    BLOCKS, CAPACITY, CLOSED, CONSUMER, EPOCH, FLAGS, HEAD, Image, LEN, PAGE, PERSISTENT, PRODUCER, ROLE_FLAGS, Ring,
    TAIL, payload, run_u32, run_u64,
};
use super::model::{
    Attached, Class, Kind, Message, NameAfter, Reader, RegionBytes, Role, Run, Segment, Segments, Then, When,
};

/// Every image.
pub fn all() -> Segments {
    let mut list = List(Vec::new());
    good_ring::add(&mut list);
    good_words::add(&mut list);
    good_region::add(&mut list);
    good_bus::add(&mut list);
    later::add_good(&mut list);
    hostile_header::add(&mut list);
    hostile_ring::add(&mut list);
    later::add_hostile(&mut list);
    hostile_bus::add(&mut list);
    Segments { format: "1.0".into(), segments: list.0 }
}

struct List(Vec<Segment>);

impl List {
    fn good(&mut self, kind: Kind, name: &str, about: &str, image: &Image, readers: Vec<Reader>) {
        self.push(Class::Good, kind, name, about, image, readers);
    }

    fn hostile(&mut self, kind: Kind, name: &str, about: &str, image: &Image, readers: Vec<Reader>) {
        self.push(Class::Hostile, kind, name, about, image, readers);
    }

    fn push(&mut self, class: Class, kind: Kind, name: &str, about: &str, image: &Image, mut readers: Vec<Reader>) {
        assert!(self.0.iter().all(|other| other.name != name), "two images are called {name}");
        for reader in &mut readers {
            if reader.open != "ok" && kind != Kind::Bus {
                reader.name_after = Some(NameAfter::Stays);
            }
            if kind == Kind::Bus {
                // What nobody can look at: the memory has no name.
                reader.name_after = None;
            }
        }
        let (name, about, bytes) = (name.into(), about.into(), image.runs());
        self.0.push(Segment { name, about, class, kind, size: image.size, bytes, readers });
    }
}

/// Opening gives this error.
pub fn refused(role: Role, error: &str) -> Reader {
    Reader {
        role,
        held: None,
        open: error.into(),
        attached: None,
        region: None,
        then: None,
        messages: Vec::new(),
        last: None,
        send: None,
        end: None,
        leaves: Vec::new(),
        name_after: None,
    }
}

/// Both roles of a ring are refused.
fn both_refused(error: &str) -> Vec<Reader> {
    vec![refused(Role::Consumer, error), refused(Role::Producer, error)]
}

fn attached(ring: &Ring, image: &Image, role: u64) -> Attached {
    let peer = if role == PRODUCER { CONSUMER } else { PRODUCER };
    Attached {
        epoch: image.read_u32(ring.block + role + EPOCH).wrapping_add(1).max(1),
        peer_epoch: image.read_u32(ring.block + peer + EPOCH),
        capacity: ring.capacity,
        max: ring.max(),
    }
}

/// The role's words after it was attached and closed.
fn closed_words(ring: &Ring, image: &Image, role: u64) -> Vec<Run> {
    let line = ring.block + role;
    let mut flags = run_u32(line + ROLE_FLAGS, CLOSED);
    flags.mask = Some("04000000".into());
    vec![flags, run_u32(line + EPOCH, attached(ring, image, role).epoch)]
}

/// A consumer receives everything that is there, and then this ends it.
fn consumer(ring: &Ring, image: &Image, end: &str) -> Reader {
    let mut leaves = Vec::new();
    if end != "Corrupt" {
        leaves = closed_words(ring, image, CONSUMER);
        leaves.insert(0, run_u64(ring.block + HEAD, ring.tail));
    }
    let keeps = end == "Corrupt" || image.read_u32(FLAGS) & PERSISTENT != 0;
    Reader {
        open: "ok".into(),
        attached: Some(attached(ring, image, CONSUMER)),
        messages: ring.messages.clone(),
        end: Some(end.into()),
        leaves,
        name_after: Some(if keeps { NameAfter::Stays } else { NameAfter::Gone }),
        ..refused(Role::Consumer, "")
    }
}

/// A producer finds this tag (`None`: no message yet) and tries to send `len` bytes.
fn producer(ring: &Ring, image: &Image, last: Option<u64>, len: u64, end: &str) -> Reader {
    let mut leaves = Vec::new();
    if end != "Corrupt" {
        leaves = closed_words(ring, image, PRODUCER);
        let sent = if end == "sent" { ring.frame(len) } else { 0 };
        leaves.insert(0, run_u64(ring.block + TAIL, ring.tail.wrapping_add(sent)));
    }
    Reader {
        open: "ok".into(),
        attached: Some(attached(ring, image, PRODUCER)),
        last: Some(last.map_or("none".into(), |tag| tag.to_string())),
        send: Some(len),
        end: Some(end.into()),
        leaves,
        name_after: Some(NameAfter::Stays),
        ..refused(Role::Producer, "")
    }
}

/// A region is opened and read whole.
fn region(image: &Image) -> Reader {
    let len = u64::from_le_bytes(image.read(BLOCKS[0] + LEN, 8).try_into().expect("8 bytes"));
    let data = u64::from_le_bytes(image.read(BLOCKS[0], 8).try_into().expect("8 bytes"));
    let keeps = image.read_u32(FLAGS) & PERSISTENT != 0;
    Reader {
        open: "ok".into(),
        region: Some(RegionBytes { len, crc32: crc32fast::hash(&image.read(data, len)) }),
        name_after: Some(if keeps { NameAfter::Stays } else { NameAfter::Gone }),
        ..refused(Role::Region, "")
    }
}

/// The reader also leaves this behind.
fn leaving(mut reader: Reader, runs: impl IntoIterator<Item = Run>) -> Reader {
    reader.leaves.extend(runs);
    reader
}

/// The other side writes this after the attach.
fn then(mut reader: Reader, when: When, bytes: impl IntoIterator<Item = Run>) -> Reader {
    reader.then = Some(Then { when, bytes: bytes.into_iter().collect(), hang_up: false });
    reader
}

/// Somebody alive has the other role, so that the name stays.
fn held(mut reader: Reader) -> Reader {
    reader.held = Some(if reader.role == Role::Consumer { Role::Producer } else { Role::Consumer });
    reader.name_after = Some(NameAfter::Stays);
    reader
}

/// The reader finds these messages, not those that the image was made with.
fn finding(mut reader: Reader, messages: &[Message]) -> Reader {
    reader.messages = messages.to_vec();
    reader
}

/// A named ring of the smallest capacity with these messages, the numbers of which are `tag = 100 + i`.
fn ring_with(align: u64, lengths: &[u64]) -> (Image, Ring) {
    let (mut image, mut ring) = Ring::segment(4096, align);
    for (i, &len) in lengths.iter().enumerate() {
        ring.send(&mut image, i as u32, 100 + i as u64, &payload(i as u64, len));
    }
    (image, ring)
}

/// A ring's geometry as it is, with one number changed.
fn geometry(change: impl FnOnce(&mut Image) -> &mut Image) -> Image {
    let (mut image, _) = ring_with(16, &[5]);
    change(&mut image);
    image
}

/// The words that the header page of [`geometry`] begins with.
const RING_SIZE: u64 = PAGE + 4096;
const RING_CAPACITY: u64 = BLOCKS[0] + CAPACITY;
