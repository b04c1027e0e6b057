//! Who fences: nobody, while both sides can membarrier, but for a side that sleeps before nearly every message.
#![cfg(target_os = "linux")]

mod support;

use ramway::layout::{BLOCK_OFFSETS, ROLE_FENCE_FREE, ROLE_MEMBARRIER_CAPABLE, RingBlock, RoleLine};
use ramway::{Ring, WaitPolicy};
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::channel;
use support::readiness::forbid;
use support::{Dir, eventually};

/// Wake-ups in a row after which a side fences, and fences that wake nobody after which it does not.
const OFTEN: usize = 8;
const FEW: usize = 16;

/// The words of a ring's roles, as a third party sees them.
struct Words(File);

impl Words {
    fn of(path: &str) -> Self {
        Self(File::open(path).unwrap())
    }

    fn load(&self, role: usize, field: usize) -> u32 {
        let mut word = [0; 4];
        self.0.read_exact_at(&mut word, (BLOCK_OFFSETS[0] + role + field) as u64).unwrap();
        u32::from_ne_bytes(word)
    }

    fn flag(&self, role: usize, flag: u32) -> bool {
        self.load(role, offset_of!(RoleLine, flags)) & flag != 0
    }

    fn until_it_waits(&self, role: usize) {
        eventually("the other side does not wait", || self.load(role, offset_of!(RoleLine, wait)) == 1);
    }
}

const PRODUCER: usize = offset_of!(RingBlock, producer);
const CONSUMER: usize = offset_of!(RingBlock, consumer);

#[test]
fn a_sender_fences_for_a_receiver_that_sleeps_often_which_then_makes_no_membarrier() {
    let dir = Dir::new();
    let path = dir.at("ring");
    let mut tx = Ring::create(&path).capacity(1 << 16).sender().unwrap();
    let mut rx = Ring::open(&path).receiver().unwrap();
    rx.set_wait_policy(WaitPolicy::Block);
    let words = Words::of(&path);
    tx.send(0, &[]).unwrap();
    rx.recv().unwrap();
    if !words.flag(PRODUCER, ROLE_FENCE_FREE) {
        println!("no membarrier here");
        return;
    }
    let (fences, may_forbid) = channel();
    std::thread::scope(|scope| {
        let rx = &mut rx;
        scope.spawn(move || {
            (0..OFTEN).for_each(|_| drop(rx.recv().unwrap()));
            may_forbid.recv().unwrap();
            // One that is tried after all fails, and then the flag says so.
            forbid(libc::SYS_membarrier);
            (0..3 * OFTEN).for_each(|_| drop(rx.recv().unwrap()));
        });
        for count in 1..=OFTEN {
            words.until_it_waits(CONSUMER);
            tx.send(0, &[]).unwrap();
            assert_eq!(words.flag(PRODUCER, ROLE_FENCE_FREE), count < OFTEN, "after {count}");
        }
        fences.send(()).unwrap();
        for _ in 0..3 * OFTEN {
            words.until_it_waits(CONSUMER);
            tx.send(0, &[]).unwrap();
        }
    });
    assert!(!words.flag(PRODUCER, ROLE_FENCE_FREE));
    assert!(words.flag(CONSUMER, ROLE_MEMBARRIER_CAPABLE), "the receiver has made a membarrier");
    for count in 1..=FEW {
        tx.send(0, &[]).unwrap();
        assert_eq!(words.flag(PRODUCER, ROLE_FENCE_FREE), count == FEW, "after {count}");
    }
    drop(rx);
}

#[test]
fn a_receiver_fences_for_a_sender_that_sleeps_often() {
    let dir = Dir::new();
    let path = dir.at("ring");
    let mut tx = Ring::create(&path).capacity(4096).sender().unwrap();
    let mut rx = Ring::open(&path).receiver().unwrap();
    tx.set_wait_policy(WaitPolicy::Block);
    let words = Words::of(&path);
    // One of these fits.
    let message = vec![1; 4000];
    tx.send(0, &message).unwrap();
    rx.recv().unwrap();
    if !words.flag(CONSUMER, ROLE_FENCE_FREE) {
        println!("no membarrier here");
        return;
    }
    std::thread::scope(|scope| {
        let (tx, message) = (&mut tx, &message);
        scope.spawn(move || (0..=OFTEN).for_each(|_| tx.send(0, message).unwrap()));
        for count in 1..=OFTEN {
            words.until_it_waits(PRODUCER);
            rx.recv().unwrap();
            assert_eq!(words.flag(CONSUMER, ROLE_FENCE_FREE), count < OFTEN, "after {count}");
        }
    });
    for count in 1..=FEW {
        rx.recv().unwrap();
        assert_eq!(words.flag(CONSUMER, ROLE_FENCE_FREE), count == FEW, "after {count}");
        tx.send(0, &message).unwrap();
    }
}
