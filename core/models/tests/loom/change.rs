//! Who fences changes while both sides run: a waker fences as long as the other side sleeps often. In the models two sleeps are
//! often, and two fences that wake nobody are the end of that.

use crate::{LOST, Rx, Tx, Watched, two};
use ramway_models::{Step, fails_without, forbid_membarrier, holds, interrupt_point};

/// A ring whose receiver has slept before each of so many messages, by a sender that began fence-free.
fn after_sleeps(count: u64) -> (Watched, Tx, Rx) {
    let ring = Watched::new(8, false);
    let (mut tx, mut rx) = (ring.sender(true), ring.receiver(true));
    for value in 1..=count {
        ring.ring.receiver_waits();
        tx.send(value);
        assert_eq!(rx.try_recv(), Ok(value));
    }
    assert_eq!(ring.ring.sender_is_fence_free(), (1..2).contains(&count));
    (ring, tx, rx)
}

/// `messages` to a receiver that blocks for each, after `sleeps` sleeps and `fences` messages that woke nobody.
fn goes_on(sleeps: u64, fences: u64, messages: u64) {
    let (_, mut tx, mut rx) = after_sleeps(sleeps);
    for value in 0..fences {
        tx.send(value);
        assert_eq!(rx.try_recv(), Ok(value));
    }
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
            std::mem::forget(rx);
        },
    );
}

#[test]
fn a_sender_comes_to_fence_for_one_that_sleeps_often() {
    holds(Some(3), || goes_on(1, 0, 2));
    holds(Some(2), || goes_on(1, 0, 3));
}

#[test]
fn a_receiver_without_membarrier_is_woken_by_a_sender_that_has_come_to_fence() {
    holds(Some(3), || goes_on(2, 0, 1));
    fails_without(&[Step::WakerFence], LOST, Some(3), || goes_on(2, 0, 1));
    fails_without(&[Step::SleeperFence], LOST, Some(3), || goes_on(2, 0, 1));
}

/// The first message is the last one that is fenced, the second one is not.
#[test]
fn a_sender_comes_to_do_without_its_fence_again() {
    holds(Some(3), || goes_on(2, 1, 2));
}

/// Either of the two that follow the change: it is the same fence twice.
#[test]
fn without_a_fence_after_the_change_it_leaves_a_receiver_asleep_that_has_seen_none() {
    fails_without(&[Step::FenceFreeFence, Step::FenceAfterChange], LOST, Some(3), || goes_on(2, 1, 2));
}

/// A sender that fences again, because its receiver can no longer membarrier, and learns of it when it asks for room: its last message
/// was published without a fence.
fn fences_again_before_the_next_message() {
    let (_, mut tx, mut rx) = after_sleeps(1);
    two(
        move || {
            tx.send(2);
            drop(tx.tx.try_reserve(0).unwrap());
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
fn a_receiver_that_sees_a_sender_fence_again_sees_what_it_sent_without() {
    holds(Some(3), fences_again_before_the_next_message);
}

/// A ring of two frames, full, whose sender has slept `sleeps` times for room, and now does so before each of `messages`.
fn room_goes_on(sleeps: u64, messages: u64) {
    let ring = Watched::new(2, false);
    let (mut tx, mut rx) = (ring.sender(true), ring.receiver(true));
    assert!(tx.try_send(1) && tx.try_send(2));
    for value in 1..=sleeps {
        ring.ring.sender_waits();
        assert_eq!(rx.try_recv(), Ok(value));
        assert!(tx.try_send(value + 2));
    }
    two(
        move || {
            for value in 1..=messages {
                tx.send(sleeps + value + 2);
            }
            std::mem::forget(tx);
        },
        move || {
            for value in 1..=messages {
                interrupt_point();
                assert_eq!(rx.try_recv(), Ok(sleeps + value));
            }
            interrupt_point();
            std::mem::forget(rx);
        },
    );
}

#[test]
fn a_receiver_comes_to_fence_for_a_sender_that_sleeps_often() {
    holds(Some(3), || room_goes_on(1, 2));
    holds(Some(3), || room_goes_on(2, 1));
}

#[test]
fn without_its_fence_the_sender_waits_for_ever() {
    fails_without(&[Step::WakerFence], LOST, Some(3), || room_goes_on(2, 1));
    fails_without(&[Step::SleeperFence], LOST, Some(3), || room_goes_on(2, 1));
}
