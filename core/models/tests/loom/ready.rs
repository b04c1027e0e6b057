//! The readiness descriptor: an event loop that polls it sees every message, and sleeps when there is none.

use crate::{LOST, Watched, two};
use ramway_models::ErrorKind;
use ramway_models::{Step, fails_without, forbid_membarrier, holds, interrupt_point};

/// Two messages to an event loop that tries, and polls when there is nothing.
fn receiver_polls(membarrier: bool, messages: u64) {
    let ring = Watched::new(2, false);
    let (mut tx, mut rx) = (ring.sender(membarrier), ring.receiver(membarrier));
    let poll = rx.rx.readiness().unwrap().poll();
    two(
        move || {
            for value in 1..=messages {
                interrupt_point();
                assert!(tx.try_send(value));
            }
            interrupt_point();
            std::mem::forget(tx);
        },
        move || {
            for value in 1..=messages {
                loop {
                    match rx.try_recv() {
                        Ok(got) => break assert_eq!(got, value),
                        Err(kind) => assert_eq!(kind, ErrorKind::Empty),
                    }
                    poll.readable();
                }
            }
            std::mem::forget(rx);
        },
    );
}

/// A full ring, and an event loop that wants to send one more.
fn sender_polls(membarrier: bool) {
    let ring = Watched::new(2, false);
    let (mut tx, mut rx) = (ring.sender(membarrier), ring.receiver(membarrier));
    assert!(tx.try_send(1) && tx.try_send(2));
    let poll = tx.tx.readiness().unwrap().poll();
    two(
        move || {
            while !tx.try_send(3) {
                poll.readable();
            }
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
fn an_event_loop_sees_every_message() {
    holds(Some(3), || receiver_polls(false, 1));
    holds(Some(3), || receiver_polls(true, 1));
    holds(Some(2), || receiver_polls(false, 2));
    holds(Some(2), || receiver_polls(true, 2));
}

#[test]
fn an_event_loop_sees_room() {
    holds(Some(3), || sender_polls(false));
    holds(Some(3), || sender_polls(true));
}

#[test]
fn without_the_check_after_arming_an_event_loop_misses_a_message() {
    fails_without(&[Step::Recheck], LOST, Some(3), || receiver_polls(false, 1));
    fails_without(&[Step::Recheck], LOST, Some(3), || receiver_polls(true, 1));
}

#[test]
fn without_arming_again_an_event_loop_never_sleeps() {
    fails_without(&[Step::Rearm], "does not arm its word again", Some(3), || receiver_polls(false, 1));
}

#[test]
fn without_order_an_event_loop_misses_a_message() {
    fails_without(&[Step::SleeperFence], LOST, Some(3), || receiver_polls(false, 1));
    fails_without(&[Step::Membarrier], LOST, Some(3), || receiver_polls(true, 1));
}

/// The close of the sender makes the descriptor readable, and the message before it comes first.
#[test]
fn an_event_loop_learns_of_a_close() {
    holds(Some(3), || {
        let ring = Watched::new(2, false);
        let (mut tx, mut rx) = (ring.sender(false), ring.receiver(false));
        let poll = rx.rx.readiness().unwrap().poll();
        two(
            move || {
                assert!(tx.try_send(1));
                drop(tx);
            },
            move || {
                let mut got = Vec::new();
                loop {
                    match rx.try_recv() {
                        Ok(value) => got.push(value),
                        Err(ErrorKind::Empty) => poll.readable(),
                        Err(kind) => break assert_eq!((kind, &got[..]), (ErrorKind::Closed, &[1][..])),
                    }
                }
            },
        );
    });
}

/// A receiver that loses membarrier while its sender is fence-free polls in short intervals.
#[test]
fn an_event_loop_that_loses_membarrier_sees_every_message() {
    holds(Some(3), || {
        let ring = Watched::new(2, false);
        let (mut tx, mut rx) = (ring.sender(true), ring.receiver(true));
        let poll = rx.rx.readiness().unwrap().poll();
        two(
            move || {
                assert!(tx.try_send(1));
                std::mem::forget(tx);
            },
            move || {
                forbid_membarrier();
                while rx.try_recv() == Err(ErrorKind::Empty) {
                    loom::thread::yield_now();
                    poll.readable();
                }
                std::mem::forget(rx);
            },
        );
    });
}
