//! `tests/c/peer.c` in Rust, over the crate itself: see there.

use ramway_core::ring::log::Log;
use ramway_core::{Bus, ErrorKind, Receiver, Result, Ring, Sender, Topic};
use std::process::ExitCode;
use std::time::Duration;

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn length_of(i: u64) -> usize {
    24 + (i * 7919 % 200) as usize
}

fn fill(to: &mut [u8], i: u64) {
    let len = length_of(i) - 8;
    to[..8].copy_from_slice(&i.to_le_bytes());
    for (k, byte) in to.iter_mut().enumerate().take(len).skip(8) {
        *byte = (i as usize + k) as u8;
    }
    let hash = fnv(&to[..len]);
    to[len..len + 8].copy_from_slice(&hash.to_le_bytes());
}

fn verify(bytes: &[u8], type_id: u32, tag: u64) -> u64 {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let (i, end) = (word(0), bytes.len() - 8);
    assert_eq!((bytes.len(), u64::from(type_id), tag), (length_of(i), i % 1000, i + 1));
    assert!((8..end).all(|k| bytes[k] == (i as usize + k) as u8));
    assert_eq!(word(end), fnv(&bytes[..end]));
    i
}

fn send_one<L: Log>(tx: &mut Sender<L>, i: u64) -> Result<()> {
    let (len, type_id, tag) = (length_of(i), (i % 1000) as u32, i + 1);
    if i.is_multiple_of(3) {
        let mut copy = [0; 256];
        fill(&mut copy, i);
        return tx.send_tagged(type_id, tag, &copy[..len]);
    }
    let mut slot = tx.reserve(250)?.with_type_id(type_id).with_tag(tag);
    fill(&mut slot, i);
    if i % 3 == 1 { slot.commit(len) } else { slot.commit_unflushed(len) }
}

fn send_all<L: Log>(tx: &mut Sender<L>, count: u64) -> Result<()> {
    let first = tx.last_tag().unwrap_or(0);
    let (mut i, mut outcome) = (first, Ok(()));
    while i < count && outcome.is_ok() {
        outcome = send_one(tx, i);
        if first != 0 && i == first && matches!(&outcome, Err(e) if e.kind() == ErrorKind::PeerDead) {
            // Started anew before the receiver was: it comes.
            std::thread::sleep(Duration::from_millis(10));
            outcome = Ok(());
            continue;
        }
        i += 1;
    }
    println!("{first} {i}");
    outcome?;
    tx.flush()
}

fn recv_all<L: Log>(rx: &mut Receiver<L>) -> Result<()> {
    let (mut first, mut next) = (0, 0);
    let end = loop {
        let mut batch = match rx.recv_batch(16) {
            Ok(batch) => batch,
            Err(end) => break end,
        };
        for message in batch.iter() {
            let i = verify(&message, message.type_id(), message.tag());
            if next == 0 {
                first = i;
            } else {
                assert_eq!(i, next);
            }
            next = i + 1;
            if next - first == 1000 {
                eprintln!("running");
            }
        }
    };
    println!("{first} {next}");
    if end.kind() == ErrorKind::Closed { Ok(()) } else { Err(end) }
}

fn run(args: &[String]) -> Result<()> {
    let [role, kind, name, count, _path] = args else { panic!("peer send|recv ring|bus|topic NAME COUNT PATH") };
    let (sends, count) = (role == "send", count.parse().expect("a number"));
    if kind == "topic" {
        let topic = Topic::open_or_create(name).capacity(1 << 16);
        if !sends {
            return recv_all(&mut topic.subscriber()?);
        }
        let mut publisher = topic.publisher()?;
        publisher.wait_for_subscribers(1)?;
        eprintln!("attached");
        return send_all(&mut publisher, count);
    }
    let (tx, rx) = match (kind.as_str(), sends) {
        ("bus", true) => Bus::listen(name, 1 << 16)?.split(),
        ("bus", false) => Bus::connector(name).timeout(Duration::from_secs(60)).connect()?.split(),
        (_, true) => (Some(Ring::open_or_create(name).capacity(1 << 16).sender()?), None),
        (_, false) => (None, Some(Ring::open_or_create(name).capacity(1 << 16).receiver()?)),
    };
    match (sends, tx, rx) {
        (true, Some(mut tx), _rx) => {
            eprintln!("attached");
            send_all(&mut tx, count)
        }
        (false, _tx, Some(mut rx)) => recv_all(&mut rx),
        _ => unreachable!("both directions have a capacity"),
    }
}

fn main() -> ExitCode {
    // A test that hangs is a test that failed.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(120));
        std::process::exit(99);
    });
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.code() as u8)
        }
    }
}
