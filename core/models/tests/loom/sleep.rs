//! The sleep protocol: a wake-up that is lost is a deadlock.

use crate::{LOST, Watched, two};
use ramway_models::{Step, fails_without, forbid_membarrier, holds, interrupt_point};

/// Who can membarrier.
#[derive(Clone, Copy)]
struct Membarrier {
    sender: bool,
    receiver: bool,
}

/// Nobody is fence-free: fences on both sides.
const FENCES: Membarrier = Membarrier { sender: false, receiver: false };
/// The wakers are fence-free, the sleepers membarrier.
const FENCE_FREE: Membarrier = Membarrier { sender: true, receiver: true };
/// The receiver sleeps with membarrier, its waker has none and fences.
const RECEIVER_ONLY: Membarrier = Membarrier { sender: false, receiver: true };

/// `messages` messages to a receiver that blocks for each.
fn receiver_sleeps(membarrier: Membarrier, messages: u64) {
    let ring = Watched::new(4, false);
    let (mut tx, mut rx) = (ring.sender(membarrier.sender), ring.receiver(membarrier.receiver));
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
fn sender_sleeps(membarrier: Membarrier) {
    let ring = Watched::new(2, false);
    let (mut tx, mut rx) = (ring.sender(membarrier.sender), ring.receiver(membarrier.receiver));
    // So that the receiver has acted on what the sender says of itself: the look that goes with that would hide what is shown here.
    assert!(tx.try_send(0) && rx.try_recv() == Ok(0));
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
    holds(Some(4), || receiver_sleeps(FENCE_FREE, 1));
    holds(Some(2), || receiver_sleeps(FENCE_FREE, 2));
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
    holds(Some(3), || sender_sleeps(FENCE_FREE));
}

#[test]
fn without_the_waker_s_fence_a_wake_up_is_lost() {
    fails_without(&[Step::WakerFence], LOST, Some(3), || receiver_sleeps(FENCES, 1));
    fails_without(&[Step::WakerFence], LOST, Some(3), || sender_sleeps(FENCES));
}

#[test]
fn without_the_sleeper_s_fence_a_wake_up_is_lost() {
    fails_without(&[Step::SleeperFence], LOST, Some(3), || receiver_sleeps(FENCES, 1));
    fails_without(&[Step::SleeperFence], LOST, Some(3), || sender_sleeps(FENCES));
}

#[test]
fn without_membarrier_a_wake_up_is_lost() {
    fails_without(&[Step::Membarrier], LOST, Some(3), || receiver_sleeps(FENCE_FREE, 1));
    fails_without(&[Step::Membarrier], LOST, Some(3), || sender_sleeps(FENCE_FREE));
}

#[test]
fn without_the_second_check_before_sleeping_a_wake_up_is_lost() {
    fails_without(&[Step::Recheck], LOST, Some(3), || receiver_sleeps(FENCES, 1));
    fails_without(&[Step::Recheck], LOST, Some(3), || receiver_sleeps(FENCE_FREE, 1));
    fails_without(&[Step::Recheck], LOST, Some(3), || sender_sleeps(FENCES));
}

/// A receiver comes while the sender already runs, and blocks: the sender becomes fence-free in between.
fn receiver_attaches(membarrier: Membarrier, forbid: bool) {
    let ring = Watched::new(4, true);
    let mut tx = ring.sender(membarrier.sender);
    two(
        move || {
            interrupt_point();
            tx.send(1);
            interrupt_point();
            std::mem::forget(tx);
        },
        move || {
            let mut rx = ring.receiver(membarrier.receiver);
            if forbid {
                forbid_membarrier();
            }
            assert_eq!(rx.recv(), Ok(1));
            std::mem::forget(rx);
        },
    );
}

#[test]
fn a_sender_becomes_fence_free_while_it_runs() {
    holds(Some(3), || receiver_attaches(FENCE_FREE, false));
}

#[test]
fn a_receiver_attaches_to_a_sender_that_fences() {
    holds(Some(3), || receiver_attaches(FENCES, false));
}

/// membarrier stops working between the receiver's attach and its first sleep, while the sender becomes fence-free.
#[test]
fn a_sender_becomes_fence_free_while_membarrier_stops_working() {
    holds(Some(3), || receiver_attaches(FENCE_FREE, true));
}

#[test]
fn without_the_fence_after_becoming_fence_free_a_wake_up_is_lost() {
    fails_without(&[Step::FenceFreeFence], LOST, Some(3), || receiver_attaches(FENCE_FREE, true));
}

/// The sender is fence-free already when the receiver finds that it cannot membarrier any more.
fn membarrier_stops_working() {
    let ring = Watched::new(4, false);
    let (mut tx, mut rx) = (ring.sender(true), ring.receiver(true));
    tx.send(1);
    assert_eq!(rx.recv(), Ok(1));
    two(
        move || {
            tx.send(2);
            std::mem::forget(tx);
        },
        move || {
            forbid_membarrier();
            assert_eq!(rx.recv(), Ok(2));
            std::mem::forget(rx);
        },
    );
}

#[test]
fn a_sleeper_that_loses_membarrier_sleeps_in_short_intervals() {
    holds(Some(3), membarrier_stops_working);
}

#[test]
fn without_short_intervals_a_wake_up_of_a_sleeper_that_lost_membarrier_is_lost() {
    fails_without(&[Step::ShortIntervals], LOST, Some(3), membarrier_stops_working);
}

/// A successor that cannot membarrier succeeds a receiver that could, while the sender is fence-free.
fn successor_without_membarrier() {
    let ring = Watched::new(4, true);
    let (mut tx, mut rx) = (ring.sender(true), ring.receiver(true));
    tx.send(1);
    assert_eq!(rx.recv(), Ok(1));
    drop(rx);
    two(
        move || {
            tx.send(2);
            std::mem::forget(tx);
        },
        move || {
            let mut rx = ring.receiver(false);
            assert_eq!(rx.recv(), Ok(2));
            std::mem::forget(rx);
        },
    );
}

#[test]
fn a_successor_without_membarrier_is_woken_by_a_fence_free_sender() {
    holds(Some(3), successor_without_membarrier);
}

#[test]
fn without_short_intervals_the_wake_up_of_a_successor_is_lost() {
    fails_without(&[Step::ShortIntervals], LOST, Some(3), successor_without_membarrier);
}

/// A sender waits for room for two frames; the first one that is given back wakes it too early.
fn woken_too_early(membarrier: Membarrier) {
    let ring = Watched::new(2, false);
    let (mut tx, mut rx) = (ring.sender(membarrier.sender), ring.receiver(membarrier.receiver));
    assert!(tx.try_send(1) && tx.try_send(2));
    two(
        move || {
            // A frame of 32 bytes, the whole ring.
            tx.tx.send(0, &[7; 16]).unwrap();
            std::mem::forget(tx);
        },
        move || {
            interrupt_point();
            assert_eq!(rx.try_recv(), Ok(1));
            interrupt_point();
            assert_eq!(rx.try_recv(), Ok(2));
            interrupt_point();
            std::mem::forget(rx);
        },
    );
}

#[test]
fn a_sender_that_was_woken_too_early_sleeps_again() {
    holds(Some(3), || woken_too_early(FENCES));
    holds(Some(2), || woken_too_early(FENCE_FREE));
}

#[test]
fn without_arming_again_a_sleeper_that_was_woken_too_early_never_sleeps_again() {
    fails_without(&[Step::Rearm], "does not arm its word again", Some(3), || woken_too_early(FENCES));
}

/// Only part of a full ring is given back: the wake-up is put off until a quarter is free.
#[test]
fn a_wake_up_that_is_put_off_comes() {
    holds(Some(2), || {
        let ring = Watched::new(8, false);
        let (mut tx, mut rx) = (ring.sender(false), ring.receiver(false));
        assert!((1..=8).all(|value| tx.try_send(value)));
        two(
            move || {
                tx.send(9);
                std::mem::forget(tx);
            },
            move || {
                assert_eq!(rx.try_recv(), Ok(1));
                assert_eq!(rx.try_recv(), Ok(2));
                std::mem::forget(rx);
            },
        );
    });
}

/// Both sides sleep: a request and its answer over two rings.
#[test]
fn two_that_wait_for_each_other_are_both_woken() {
    let round_trip = |membarrier: Membarrier| {
        let (there, back) = (Watched::new(2, false), Watched::new(2, false));
        let (mut there_tx, mut there_rx) = (there.sender(membarrier.sender), there.receiver(membarrier.receiver));
        let (mut back_tx, mut back_rx) = (back.sender(membarrier.sender), back.receiver(membarrier.receiver));
        two(
            move || {
                there_tx.send(1);
                assert_eq!(back_rx.recv(), Ok(2));
                std::mem::forget((there_tx, back_rx));
            },
            move || {
                assert_eq!(there_rx.recv(), Ok(1));
                back_tx.send(2);
                std::mem::forget((back_tx, there_rx));
            },
        );
    };
    holds(Some(3), move || round_trip(FENCES));
    holds(Some(2), move || round_trip(FENCE_FREE));
}

/// A wake-up that nobody sent, as the kernel may deliver one.
#[test]
fn a_wake_up_for_nothing_changes_nothing() {
    let spurious = |membarrier: Membarrier| {
        let ring = Watched::new(2, false);
        let (mut tx, mut rx) = (ring.sender(membarrier.sender), ring.receiver(membarrier.receiver));
        two(
            move || {
                tx.watched.ring.wake_receiver_for_nothing();
                tx.send(1);
                interrupt_point();
                std::mem::forget(tx);
            },
            move || {
                assert_eq!(rx.recv(), Ok(1));
                std::mem::forget(rx);
            },
        );
    };
    holds(Some(3), move || spurious(FENCES));
    holds(Some(2), move || spurious(FENCE_FREE));
}

/// A receiver that blocks for a message that never comes, and a waker in another thread of its process.
fn a_waker_ends_a_wait(membarrier: Membarrier) {
    let ring = Watched::new(2, true);
    let (tx, mut rx) = (ring.sender(membarrier.sender), ring.receiver(membarrier.receiver));
    let waker = rx.rx.waker();
    two(
        move || {
            interrupt_point();
            waker.wake();
            std::mem::forget(tx);
        },
        move || {
            assert_eq!(rx.recv(), Err(ramway_models::ErrorKind::Interrupted));
            std::mem::forget(rx);
        },
    );
}

/// The same for a sender in a full ring.
fn a_waker_ends_a_sender_s_wait(membarrier: Membarrier) {
    let ring = Watched::new(2, true);
    let (mut tx, rx) = (ring.sender(membarrier.sender), ring.receiver(membarrier.receiver));
    assert!(tx.try_send(1) && tx.try_send(2));
    let waker = tx.tx.waker();
    two(
        move || {
            assert_eq!(tx.put(3, true, true).unwrap_err().kind(), ramway_models::ErrorKind::Interrupted);
            std::mem::forget(tx);
        },
        move || {
            waker.wake();
            std::mem::forget(rx);
        },
    );
}

#[test]
fn a_waker_is_not_slept_through() {
    holds(Some(3), || a_waker_ends_a_wait(FENCES));
    holds(Some(3), || a_waker_ends_a_wait(FENCE_FREE));
    holds(Some(3), || a_waker_ends_a_sender_s_wait(FENCES));
    holds(Some(3), || a_waker_ends_a_sender_s_wait(FENCE_FREE));
}

#[test]
fn without_its_fence_or_the_sleeper_s_a_waker_is_slept_through() {
    fails_without(&[Step::WakerFence], LOST, Some(3), || a_waker_ends_a_wait(FENCES));
    fails_without(&[Step::SleeperFence], LOST, Some(3), || a_waker_ends_a_wait(FENCES));
    fails_without(&[Step::WakerFence], LOST, Some(3), || a_waker_ends_a_sender_s_wait(FENCES));
    fails_without(&[Step::SleeperFence], LOST, Some(3), || a_waker_ends_a_sender_s_wait(FENCES));
}
