//! A peer that passed the handshake and then writes whatever it likes into the shared memory.

mod support;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ramway::{Bus, ErrorKind, Listener};
use support::raw::{self, ACK, Whole};
use support::{Dir, LONG, Peer, argument, eventually, helper_role, say};

/// Words of a ring block, from its start.
const TAIL: usize = 0x080;
const MARK: usize = 0x088;
const HEAD: usize = 0x100;
const PRODUCER: usize = 0x180;
const CONSUMER: usize = 0x200;
/// Words of a role line, from its start.
const WAIT: usize = 0;
const FLAGS: usize = 4;
const EPOCH: usize = 8;
const CLOSE_SEEN: usize = 12;
/// The listener sends into block 0 and receives from block 1.
const BLOCK: [usize; 2] = [0x400, 0x800];
const CAPACITY: u64 = 8192;
/// Where block 1's data begins.
const DATA: usize = 4096 + CAPACITY as usize;

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role[0].as_str() {
        "victim" => victim(),
        other => panic!("no such role: {other}"),
    }
}

/// A connector by hand with a bus whose other side is the library's.
struct Hostile {
    memory: Whole,
    socket: UnixStream,
}

impl Hostile {
    fn connect(path: &Path) -> Self {
        let socket = raw::connect(path);
        let (memory, size) = raw::greet(&socket);
        let memory = Whole::map(memory.as_fd(), size);
        raw::send(&socket, &raw::message(ACK, 0, 0));
        Self { memory, socket }
    }

    fn word(&self, block: usize, at: usize) -> &std::sync::atomic::AtomicU64 {
        self.memory.u64(BLOCK[block] + at)
    }

    fn half(&self, block: usize, role: usize, at: usize) -> &std::sync::atomic::AtomicU32 {
        self.memory.u32(BLOCK[block] + role + at)
    }

    /// Publishes one frame of the ring to the victim with these header words and this position after it.
    fn publish(&self, len: u32, type_id: u32, tail: u64) {
        self.memory.u32(DATA).store(len, Ordering::Relaxed);
        self.memory.u32(DATA + 4).store(type_id, Ordering::Relaxed);
        self.word(1, TAIL).store(tail, Ordering::Release);
    }
}

fn pair(dir: &Dir) -> (Bus, Hostile) {
    let listener = Listener::builder(dir.join("l")).capacity(CAPACITY).bind().unwrap();
    let path = listener.path().to_owned();
    let hostile = std::thread::spawn(move || Hostile::connect(&path));
    let bus = listener.accept_timeout(LONG).unwrap();
    (bus, hostile.join().unwrap())
}

#[test]
fn the_hand_made_peer_can_send_what_is_right() {
    let dir = Dir::new();
    let (mut bus, peer) = pair(&dir);
    peer.publish(4, 9, 32);
    let message = bus.recv_timeout(LONG).unwrap();
    assert_eq!((message.type_id(), message.len()), (9, 4));
    message.release();
    assert_eq!(peer.word(1, HEAD).load(Ordering::Acquire), 32);
    bus.send(3, b"hello").unwrap();
    assert_eq!(peer.word(0, TAIL).load(Ordering::Acquire), 32);
}

/// What a receiver makes of a frame header and a tail that cannot be.
#[test]
fn a_length_or_position_that_cannot_be_is_corrupt() {
    let dir = Dir::new();
    let cases: &[(&str, u32, u64)] = &[
        ("a frame longer than what was published", 17, 32),
        ("a frame longer than the ring", CAPACITY as u32, 32),
        ("the longest length there is", u32::MAX, 32),
        ("a length with the top bit", 1 << 31, CAPACITY),
        ("a tail beyond the capacity", 4, CAPACITY + 16),
        ("a tail far away", 4, 1 << 40),
        ("a tail that went back", 4, u64::MAX - 15),
        ("a tail that is not aligned", 4, 33),
        ("a tail inside the frame", 4, 8),
    ];
    for &(what, len, tail) in cases {
        let (mut bus, peer) = pair(&dir);
        peer.publish(len, 1, tail);
        let error = bus.recv_timeout(LONG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        // The handle stays dead, even if the memory is right again.
        peer.publish(4, 1, 32);
        assert_eq!(bus.try_recv().unwrap_err().kind(), ErrorKind::Corrupt, "{what}");
        assert_eq!(bus.receiver().unwrap().recv_batch(4).map(drop).unwrap_err().kind(), ErrorKind::Corrupt, "{what}");
        // The other direction is another matter.
        bus.send(1, b"still").unwrap();
    }
}

#[test]
fn a_head_that_cannot_be_is_corrupt() {
    let dir = Dir::new();
    for (what, head) in [
        ("ahead of tail", 1 << 20),
        ("just ahead of tail", CAPACITY + 16),
        ("not aligned", 7),
        ("far behind", u64::MAX - (1 << 20) + 1),
        ("a capacity and a step behind", u64::MAX - 15),
    ] {
        let (mut bus, peer) = pair(&dir);
        // Full, so that the sender has to read the position.
        while bus.try_send(1, &[0; 1008]).is_ok() {}
        peer.word(0, HEAD).store(head, Ordering::Release);
        let error = bus.send_timeout(1, &[0; 1008], Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        peer.word(0, HEAD).store(1024, Ordering::Release);
        assert_eq!(bus.try_send(1, b"").unwrap_err().kind(), ErrorKind::Corrupt, "{what}");
    }
}

#[test]
fn flags_and_epochs_are_only_lies_about_the_peer() {
    let dir = Dir::new();
    let (mut bus, peer) = pair(&dir);
    for value in [0, u32::MAX, 1, 2, 3, 0x8000_0000] {
        for role in [PRODUCER, CONSUMER] {
            for at in [WAIT, EPOCH, CLOSE_SEEN] {
                for block in [0, 1] {
                    peer.half(block, role, at).store(value, Ordering::SeqCst);
                }
            }
        }
        let _ = bus.try_send(1, b"x");
        let _ = bus.recv_timeout(Duration::from_millis(20)).map(drop);
        let (out, back) = (bus.sender().unwrap().peer_epoch(), bus.receiver().unwrap().peer_epoch());
        assert_eq!((out, back), (value, value));
        assert!(bus.is_peer_alive());
    }
    for at in [MARK, MARK + 8, MARK + 16, MARK + 24] {
        peer.word(0, at).store(u64::MAX, Ordering::SeqCst);
    }
    let _ = bus.sender().unwrap().last_tag();
    // The closed flag is believed: it ends the stream, after what was sent.
    peer.publish(4, 9, 32);
    peer.half(1, PRODUCER, EPOCH).store(1, Ordering::SeqCst);
    peer.half(1, PRODUCER, FLAGS).store(4, Ordering::SeqCst);
    assert_eq!(bus.recv_timeout(LONG).unwrap().type_id(), 9);
    assert_eq!(bus.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn the_geometry_is_read_once() {
    let dir = Dir::new();
    let (mut bus, peer) = pair(&dir);
    for block in BLOCK {
        for at in [0, 8, 16, 24] {
            peer.memory.u64(block + at).store(u64::MAX, Ordering::SeqCst);
        }
    }
    for at in (0..0x40).step_by(8) {
        peer.memory.u64(at).store(0, Ordering::SeqCst);
    }
    assert_eq!(bus.sender().unwrap().capacity() as u64, CAPACITY);
    bus.send(1, &[5; 4000]).unwrap();
    peer.publish(4000, 9, 4016);
    assert_eq!(bus.recv_timeout(LONG).unwrap().len(), 4000);
}

#[test]
fn stray_bytes_on_the_socket_are_no_death() {
    let dir = Dir::new();
    let (mut bus, peer) = pair(&dir);
    raw::send(&peer.socket, &[0x55; 3000]);
    assert!(bus.is_peer_alive());
    assert_eq!(bus.recv_timeout(Duration::from_millis(250)).unwrap_err().kind(), ErrorKind::TimedOut);
    drop(peer);
    assert_eq!(bus.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::PeerDead);
}

/// A peer that rewrites a message while it is read cannot make the copying calls go wrong.
#[test]
fn a_length_that_changes_under_the_reader_is_read_once() {
    let dir = Dir::new();
    let (mut bus, peer) = pair(&dir);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for len in [1, 4000, u32::MAX, 16, 1 << 31] {
                    peer.memory.u32(DATA).store(len, Ordering::Relaxed);
                }
            }
        });
        peer.word(1, TAIL).store(4016, Ordering::Release);
        let mut buffer = Vec::new();
        let end = Instant::now() + LONG;
        // Until one look was unlucky enough to see a length that cannot be, or the frame was taken as shorter than
        // it was published, which leaves a frame of zeroes behind, and so on until the ring is empty.
        loop {
            match bus.receiver().unwrap().recv_into_timeout(&mut buffer, Duration::from_millis(50)) {
                Ok(meta) => assert!(meta.len == buffer.len() && buffer.len() <= 4000),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::TimedOut), "{error}");
                    break;
                }
            }
            assert!(Instant::now() < end);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Sends and receives for all it is worth; every call must end, one way or another.
fn victim() {
    let listener = Listener::builder(argument()).capacity(CAPACITY).bind().unwrap();
    say("listening");
    loop {
        let bus = match listener.accept_timeout(Duration::from_secs(3)) {
            Ok(bus) => bus,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                return;
            }
        };
        let (Some(mut tx), Some(mut rx)) = bus.split() else { panic!("a direction is missing") };
        let sending = std::thread::spawn(move || {
            for size in (0..4000).cycle().step_by(257).take(300) {
                match tx.send_timeout(1, &vec![9; size], Duration::from_millis(2)) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::TimedOut => {}
                    Err(error) => return error.kind(),
                }
                let _ = (tx.len(), tx.last_tag(), tx.is_peer_alive());
            }
            ErrorKind::TimedOut
        });
        let mut buffer = Vec::new();
        let receiving = (0..300).find_map(|i| {
            let error = match i % 3 {
                0 => rx.recv_into_timeout(&mut buffer, Duration::from_millis(2)).err(),
                1 => rx.try_recv_batch(8).map(drop).err(),
                _ => rx.recv_timeout(Duration::from_millis(2)).map(drop).err(),
            }?;
            assert!(buffer.len() <= CAPACITY as usize, "the peer's number was believed");
            (!matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Empty)).then(|| error.kind())
        });
        let ends = [sending.join().unwrap(), receiving.unwrap_or(ErrorKind::TimedOut)];
        for end in ends {
            let fine = [ErrorKind::TimedOut, ErrorKind::Corrupt, ErrorKind::Closed, ErrorKind::PeerDead];
            assert!(fine.contains(&end), "{end:?}");
        }
    }
}

#[test]
fn random_writes_neither_crash_nor_hang_the_victim() {
    let dir = Dir::new();
    let mut player = Peer::start(&["victim", &dir.at("v")]);
    player.hear();
    let mut seed = 0x5EED_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let end = Instant::now() + Duration::from_secs(4);
    let mut rounds = 0;
    while Instant::now() < end {
        let peer = Hostile::connect(&dir.join("v"));
        rounds += 1;
        for _ in 0..random() % 4000 {
            let block = BLOCK[random() as usize % 2];
            // Small values, large ones, aligned ones, and the right one give or take a little.
            let value = match random() % 5 {
                0 => random() % 64,
                1 => random(),
                2 => (random() % (2 * CAPACITY)) & !15,
                3 => peer.memory.u64(block + TAIL).load(Ordering::Relaxed).wrapping_add(random() % 64).wrapping_sub(32),
                _ => u64::MAX - random() % 64,
            };
            match random() % 4 {
                0 => peer.memory.u64(block + TAIL + random() as usize % 5 * 8).store(value, Ordering::Release),
                1 => peer.memory.u64(block + HEAD).store(value, Ordering::Release),
                2 => {
                    let at = block + PRODUCER + random() as usize % 8 / 4 * 0x80 + random() as usize % 4 * 4;
                    // Mostly not "closed", which would end it too soon.
                    let value = if random() % 16 == 0 { value as u32 } else { value as u32 & !4 };
                    peer.memory.u32(at).store(value, Ordering::Release);
                }
                _ => {
                    let at = 4096 + random() as usize % (peer.memory.len() - 4096) / 16 * 16;
                    peer.memory.u64(at).store(value, Ordering::Release);
                }
            }
            if random() % 64 == 0 {
                std::thread::sleep(Duration::from_micros(random() % 200));
            }
        }
        // Some hang up at once, some stay until the victim lets go.
        if random() % 2 == 0 {
            raw::wait_for_the_end(&peer.socket);
        }
    }
    println!("{rounds} rounds of random writes");
    // No more connectors: the victim ends by itself, and well.
    player.finish();
    eventually("the name is gone", || dir.names().is_empty());
}
