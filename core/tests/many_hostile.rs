//! Producers of an inbox and workers of an outbox that write what no correct peer writes: each hurts itself alone.

mod support;

use ramway::{Bus, ErrorKind, Inbox, Incoming, Left, Outbox};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::raw::{self, Whole};
use support::{Dir, LONG};

const CAPACITY: u64 = 4096;

/// A peer with the right handshake, and then its own ideas.
struct Hostile {
    memory: Whole,
    /// Open: it lives.
    _socket: UnixStream,
}

impl Hostile {
    /// On a busy machine those that have gone may still be counted: then there is no place until they are noticed.
    fn connect(path: &Path) -> Self {
        let began = Instant::now();
        loop {
            let socket = raw::connect(path);
            match raw::try_greet(&socket) {
                Ok((memory, size)) => {
                    let memory = Whole::map(memory.as_fd(), size);
                    raw::send(&socket, &raw::message(raw::ACK, 0, 0));
                    return Self { memory, _socket: socket };
                }
                Err(code) => {
                    assert_eq!(code, ErrorKind::Busy.code() as u32);
                    assert!(began.elapsed() < LONG, "no place became free");
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// Writes anything to one of the words of both rings' blocks, or of the data.
    fn scribble(&self, seed: &mut u64) {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        let block = [0x400, 0x800][(*seed >> 8) as usize % 2];
        let at = match *seed % 3 {
            0 => block + [0x80, 0x100][(*seed >> 16) as usize % 2],
            1 => block + 0x80 + 8 * ((*seed >> 16) as usize % 0x40),
            _ => 4096 + 8 * ((*seed >> 16) as usize % ((self.memory.len() - 4096) / 8)),
        };
        let word = self.memory.u64(at);
        let now = word.load(Ordering::Relaxed);
        let step = ((*seed >> 40) as i8) as i64 * 16;
        let values = [0, u64::MAX, 1 << 63, CAPACITY, now.wrapping_add_signed(step), now << 32, 5];
        word.store(values[(*seed >> 32) as usize % values.len()], Ordering::Relaxed);
    }
}

/// The honest producer's messages all come, in order; the hostile ones are told of as `Corrupt`, or stay and say nothing.
#[test]
fn hostile_producers_hurt_themselves_alone() {
    const COUNT: u64 = 3_000;
    let dir = Dir::new();
    let path = dir.join("inbox.sock");
    let mut inbox = Inbox::builder(&path).capacity(CAPACITY).max_peers(64).bind().unwrap();
    let stop = AtomicBool::new(false);
    let (mut corrupt, mut next) = (0, 0);
    std::thread::scope(|scope| {
        let hostile = [1, 2u64].map(|thread| {
            let (path, stop) = (&path, &stop);
            scope.spawn(move || {
                let mut seed = thread << 40 | 0x7F4A_7C15;
                while !stop.load(Ordering::Relaxed) {
                    let hostile = Hostile::connect(path);
                    for _ in 0..50 {
                        (0..20).for_each(|_| hostile.scribble(&mut seed));
                        std::thread::yield_now();
                    }
                }
            })
        });
        scope.spawn(|| {
            let mut honest = Bus::connector(&path).timeout(LONG).connect().unwrap();
            for number in 0..COUNT {
                honest.send_tagged(0xFEED, number, &number.to_le_bytes()).unwrap();
            }
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut honest = None;
        let began = Instant::now();
        while next < COUNT || corrupt < 20 {
            assert!(began.elapsed() < LONG, "{next} messages, {corrupt} corrupt");
            match inbox.recv_timeout(Duration::from_millis(20)) {
                Ok(Incoming::Message(peer, message)) => {
                    assert!(message.len() as u64 <= CAPACITY);
                    std::hint::black_box(message.iter().fold(0u8, |sum, byte| sum ^ byte));
                    if message.type_id() == 0xFEED && *honest.get_or_insert(peer.id) == peer.id {
                        assert_eq!((message.tag(), &*message), (next, &next.to_le_bytes()[..]));
                        next += 1;
                    }
                }
                Ok(Incoming::Left(peer, how)) => {
                    assert_ne!(Some(peer.id), honest, "{how:?}");
                    corrupt += u64::from(how == Left::Corrupt);
                }
                Err(e) => assert_eq!(e.kind(), ErrorKind::TimedOut, "{e}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
        // Those that connect at this moment are to get through.
        while !hostile.iter().all(|thread| thread.is_finished()) {
            let _ = inbox.recv_timeout(Duration::from_millis(5));
        }
    });
}

/// Each task is done by the honest worker, or was given back by a hostile one; with `copies` it is what it was.
#[test]
fn hostile_workers_hurt_themselves_alone() {
    let dir = Dir::new();
    let path = dir.join("outbox.sock");
    let mut outbox =
        Outbox::builder(&path).capacity(CAPACITY).prefetch(2).max_deliveries(1000).copies(true).bind().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hostile = scope.spawn(|| {
            let mut seed = 77;
            while !stop.load(Ordering::Relaxed) {
                let hostile = Hostile::connect(&path);
                for _ in 0..30 {
                    (0..10).for_each(|_| hostile.scribble(&mut seed));
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
        });
        let honest = scope.spawn(|| {
            let mut tasks = Bus::connector(&path).timeout(LONG).connect().unwrap();
            let mut done = 0;
            while let Ok(task) = tasks.recv() {
                assert_eq!(*task, [task.tag() as u8; 100]);
                done += 1;
            }
            done
        });
        let started = Instant::now();
        let mut number = 0;
        // On a slow machine for longer.
        while started.elapsed() < Duration::from_millis(700) || (number <= 100 && started.elapsed() < LONG) {
            match outbox.send_timeout(1, number, &[number as u8; 100], Duration::from_millis(50)) {
                Ok(()) => number += 1,
                Err(e) => assert_eq!(e.kind(), ErrorKind::TimedOut, "{e}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
        // The last hostile one goes; what it had is given to the honest one.
        outbox.drain(Some(LONG)).unwrap();
        let began = Instant::now();
        while !hostile.is_finished() || outbox.outstanding() > 0 {
            assert!(began.elapsed() < LONG, "{} tasks are outstanding", outbox.outstanding());
            let _ = outbox.drain(Some(Duration::from_millis(5)));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!((outbox.outstanding(), outbox.take_undelivered()), (0, None));
        drop(outbox);
        let done: u64 = honest.join().unwrap();
        assert!(done > 0 && number > 100, "{done} of {number}");
    });
}
