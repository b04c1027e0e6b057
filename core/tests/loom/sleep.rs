//! The sleep protocol: a wake-up that is lost is a deadlock.

use crate::{LOST, Watched, two};
use ramway::model::{Ring, Step, fails_without, forbid_membarrier, holds, interrupt_point, process};

/// Who can membarrier.
#[derive(Clone, Copy)]
struct Can {
    sender: bool,
    receiver: bool,
}

/// Nobody is plain: fences on both sides.
const FENCES: Can = Can { sender: false, receiver: false };
/// The wakers are plain, the sleepers membarrier.
const PLAIN: Can = Can { sender: true, receiver: true };
/// The receiver sleeps with membarrier, its waker has none and fences.
const RECEIVER_ONLY: Can = Can { sender: false, receiver: true };

/// `messages` messages to a receiver that blocks for each.
fn receiver_sleeps(can: Can, messages: u64) {
    let ring = Watched::new(4, false);
    let (mut tx, mut rx) = (ring.sender(can.sender), ring.receiver(can.receiver));
    two(
        move || {
            for value in 1..=messages {
                interrupt_point();
                tx.send(value);
            }
            interrupt_point();
            std::mem::forget(tx);
        },
        move || {
            for value in 1..=messages {
                assert_eq!(rx.recv(), Ok(value));
            }
        },
    );
}

/// A full ring of two, and a sender that blocks for room.
fn sender_sleeps(can: Can) {
    let ring = Watched::new(2, false);
    let (mut tx, mut rx) = (ring.sender(can.sender), ring.receiver(can.receiver));
    assert!(tx.try_send(1) && tx.try_send(2));
    two(
        move || {
            tx.send(3);
            std::mem::forget(tx);
        },
        move || {
            interrupt_point();
            assert_eq!(rx.try_recv(), Ok(1));
            interrupt_point();
            std::mem::forget(rx);
        },
    );
}

#[test]
fn a_receiver_is_woken_with_fences() {
    holds(None, || receiver_sleeps(FENCES, 1));
    holds(Some(3), || receiver_sleeps(FENCES, 2));
}

#[test]
fn a_receiver_is_woken_without_the_waker_s_fence() {
    holds(None, || receiver_sleeps(PLAIN, 1));
    holds(Some(2), || receiver_sleeps(PLAIN, 2));
}

#[test]
fn a_receiver_with_membarrier_is_woken_by_a_fencing_sender() {
    holds(Some(3), || receiver_sleeps(RECEIVER_ONLY, 1));
}

#[test]
fn a_sender_is_woken_with_fences() {
    holds(None, || sender_sleeps(FENCES));
}

#[test]
fn a_sender_is_woken_without_the_waker_s_fence() {
    holds(Some(3), || sender_sleeps(PLAIN));
}

#[test]
fn without_the_waker_s_fence_a_wake_up_is_lost() {
    fails_without(Step::WakerFence, LOST, Some(3), || receiver_sleeps(FENCES, 1));
    fails_without(Step::WakerFence, LOST, Some(3), || sender_sleeps(FENCES));
}

#[test]
fn without_the_sleeper_s_fence_a_wake_up_is_lost() {
    fails_without(Step::SleeperFence, LOST, Some(3), || receiver_sleeps(FENCES, 1));
    fails_without(Step::SleeperFence, LOST, Some(3), || sender_sleeps(FENCES));
}

#[test]
fn without_membarrier_a_wake_up_is_lost() {
    fails_without(Step::Membarrier, LOST, Some(3), || receiver_sleeps(PLAIN, 1));
    fails_without(Step::Membarrier, LOST, Some(3), || sender_sleeps(PLAIN));
}

#[test]
fn without_the_second_look_before_sleeping_a_wake_up_is_lost() {
    fails_without(Step::Recheck, LOST, Some(3), || receiver_sleeps(FENCES, 1));
    fails_without(Step::Recheck, LOST, Some(3), || receiver_sleeps(PLAIN, 1));
    fails_without(Step::Recheck, LOST, Some(3), || sender_sleeps(FENCES));
}
