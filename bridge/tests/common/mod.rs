//! What the tests with real bridges stand on: machines (a Ramway directory each, where this user may also a network of their own),
//! bridges as processes, certificates, and a proxy that harms a link.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod bridge;
pub mod certificates;
pub mod net;
pub mod pair;
pub mod proxy;
pub mod service;
pub mod traffic;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ramway::{ErrorKind, Receiver, Ring, Sender};

/// What must happen happens within this; no test depends on how soon.
pub const LONG: Duration = Duration::from_secs(120);

/// One machine as far as Ramway is concerned: a directory of segments. It goes with this.
pub struct Machine {
    pub directory: PathBuf,
}

impl Machine {
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let base = [Path::new("/dev/shm"), &std::env::temp_dir()]
            .into_iter()
            .find(|base| base.is_dir())
            .expect("a directory for temporary files")
            .to_owned();
        // Relaxed: only different numbers are asked for.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = base.join(format!("ramway-bridge-test.{}.{number}.{name}", std::process::id()));
        std::fs::create_dir(&directory).expect("a directory of its own");
        Self { directory }
    }

    /// A name on this machine, as a path: the tests themselves are on all of them.
    pub fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes a file beside the segments, which is not taken for one.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(format!(".{name}"));
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub fn sender(&self, name: &str, capacity: u64) -> Sender {
        Ring::create(self.at(name)).capacity(capacity).sender().expect("a ring of this name")
    }

    /// Waits until the ring has appeared, and receives from it.
    pub fn receiver(&self, name: &str) -> Receiver {
        let mut found = None;
        until(&format!("the ring {name} appears"), || {
            match Ring::open(self.at(name)).receiver() {
                Ok(receiver) => found = Some(receiver),
                Err(error) => assert!(matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Busy), "{error}"),
            }
            found.is_some()
        });
        found.expect("it has appeared")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Waits until it is so, asking again and again; fails after [`LONG`].
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A number from the environment.
pub fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Err(_) => default,
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is '{text}', which is no number")),
    }
}

/// Numbers that look random and are the same for the same seed, which is said so that a failure can be had again
/// (`RAMWAY_TEST_SEED`).
pub struct Random(u64);

impl Random {
    pub fn new() -> Self {
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_nanos() as u64;
        let seed = number("RAMWAY_TEST_SEED", now);
        println!("RAMWAY_TEST_SEED={seed}");
        Self(seed)
    }

    /// Below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        // A step of splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// The message of this number: its length and bytes follow from the number, so that a receiver can check all of it.
pub fn message(number: u64, longest: usize) -> Vec<u8> {
    let length = 8 + (number.wrapping_mul(2_654_435_761) % (longest as u64 - 7)) as usize;
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(length, (number % 251) as u8);
    bytes
}

/// The number of a message, all of whose bytes are checked.
pub fn checked(bytes: &[u8], longest: usize) -> u64 {
    let number = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    assert!(bytes == message(number, longest), "message {number} arrived changed, with {} bytes", bytes.len());
    number
}
