//! Good memory of buses, as a listener sends it.

use super::super::image::{BLOCKS, BUS, CLOSED, CONSUMER, Image, PAGE, PRODUCER, Ring, VERSION_MINOR, payload};
use super::super::model::{Kind, Reader, Then, When};
use super::{List, consumer, producer};

/// The other side is attached to its ends, as a listener is before it sends the memory.
pub(super) fn listener_attached(image: &mut Image, rings: &[Ring; 2]) {
    rings[0].role(image, PRODUCER, 0, 1);
    rings[1].role(image, CONSUMER, 0, 1);
}

/// The listener closes its socket once the connector has the bus.
fn hanging_up(mut reader: Reader) -> Reader {
    reader.then = Some(Then { when: When::Paused, bytes: Vec::new(), hang_up: true });
    reader
}

pub fn add(list: &mut List) {
    let (mut image, rings) = Ring::bus([4096, 4096], [16, 16]);
    listener_attached(&mut image, &rings);
    list.good(
        Kind::Bus,
        "bus-empty",
        "nothing sent yet; the socket stays open, then hangs up",
        &image,
        vec![
            consumer(&rings[0], &image, "TimedOut"),
            hanging_up(consumer(&rings[0], &image, "PeerDead")),
            producer(&rings[1], &image, None, 4080, "sent"),
        ],
    );
    let (mut image, mut rings) = Ring::bus([4096, 65_536], [64, 4096]);
    listener_attached(&mut image, &rings);
    for (i, len) in [0, 5, 48, 49, 1000].into_iter().enumerate() {
        rings[0].send(&mut image, i as u32, i as u64, &payload(i as u64, len));
    }
    list.good(
        Kind::Bus,
        "bus-with-messages",
        "messages before the connector came, and another capacity and alignment each way",
        &image,
        vec![
            consumer(&rings[0], &image, "TimedOut"),
            hanging_up(consumer(&rings[0], &image, "PeerDead")),
            producer(&rings[1], &image, None, 65_520, "sent"),
            producer(&rings[1], &image, None, 65_521, "TooLarge"),
        ],
    );
    let mut closed = image.clone();
    rings[0].role(&mut closed, PRODUCER, CLOSED, 1);
    rings[1].role(&mut closed, CONSUMER, CLOSED, 1);
    list.good(
        Kind::Bus,
        "bus-closed",
        "the listener has sent, closed and gone: everything is received before Closed, and a send is Closed at once",
        &closed,
        vec![
            consumer(&rings[0], &closed, "Closed"),
            hanging_up(consumer(&rings[0], &closed, "Closed")),
            producer(&rings[1], &closed, None, 5, "Closed"),
        ],
    );
    let (mut image, rings) = Ring::bus([4096, 4096], [16, 16]);
    image.u16(VERSION_MINOR, 9).put(0x100, &[0xC3; 16]).put(0x700, &[0xC3; 16]).put(0xC00, &[0xC3; 16]);
    list.good(
        Kind::Bus,
        "bus-nobody-attached",
        "the listener's epochs are still 0, a later minor version, garbage in unnamed bytes",
        &image,
        vec![consumer(&rings[0], &image, "TimedOut"), producer(&rings[1], &image, None, 1, "sent")],
    );
    let mut image = Image::header(BUS, PAGE + 3 * 8192);
    let mut rings =
        [Ring::new(&mut image, BLOCKS[0], PAGE + 2 * 8192, 8192, 16), Ring::new(&mut image, BLOCKS[1], PAGE, 8192, 32)];
    listener_attached(&mut image, &rings);
    rings[0].send(&mut image, 1, 2, b"behind");
    list.good(
        Kind::Bus,
        "bus-data-the-other-way-round",
        "block 1's data comes first, and there is a gap before block 0's",
        &image,
        vec![consumer(&rings[0], &image, "TimedOut"), producer(&rings[1], &image, None, 1, "sent")],
    );
    let mut image = Image::header(BUS, PAGE + 4096);
    let mut ring = Ring::new(&mut image, BLOCKS[0], PAGE, 4096, 16);
    ring.role(&mut image, PRODUCER, 0, 1);
    ring.send(&mut image, 1, 2, b"one way");
    let readers = vec![consumer(&ring, &image, "TimedOut")];
    list.good(Kind::Bus, "bus-only-to-the-connector", "a capacity of 0 leaves block 1 out", &image, readers);
    let mut image = Image::header(BUS, PAGE + 4096);
    let ring = Ring::new(&mut image, BLOCKS[1], PAGE, 4096, 16);
    ring.role(&mut image, CONSUMER, 0, 1);
    let readers = vec![producer(&ring, &image, None, 100, "sent")];
    list.good(Kind::Bus, "bus-only-to-the-listener", "a capacity of 0 leaves block 0 out", &image, readers);
}
