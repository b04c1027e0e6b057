//! The end of a stream: what was committed before it is delivered before it is, and a close is never taken for a death.

use crate::{LOST, Watched, two};
use ramway_models::ErrorKind;
use ramway_models::{Step, fails_without, holds, time_passes};

const EARLY: &str = "the end came before the last message";

/// One message, then an orderly close; the receiver blocks.
fn close(named: bool) {
    let ring = Watched::new(2, named);
    let (mut tx, mut rx) = (ring.sender(false), ring.receiver(false));
    two(
        move || {
            tx.send(1);
            drop(tx);
        },
        move || {
            assert_eq!(rx.recv(), Ok(1), "{EARLY}");
            assert_eq!(rx.recv(), Err(ErrorKind::Closed));
        },
    );
}

/// The same, and the receiver asks without blocking.
fn close_seen_by_polling() {
    let ring = Watched::new(2, false);
    let (mut tx, mut rx) = (ring.sender(false), ring.receiver(false));
    two(
        move || {
            tx.send(1);
            drop(tx);
        },
        move || {
            for _ in 0..2 {
                match rx.try_recv() {
                    Ok(1) => return,
                    Err(ErrorKind::Empty) => {}
                    other => panic!("{EARLY}: {other:?}"),
                }
            }
        },
    );
}

/// One message, then the sender's process is killed.
fn death(named: bool) {
    let ring = Watched::new(2, named);
    let (mut tx, mut rx) = (ring.sender(false), ring.receiver(false));
    two(
        move || {
            // A sleeper checks the lock.
            time_passes();
            tx.send(1);
            tx.kill();
        },
        move || {
            assert_eq!(rx.recv(), Ok(1), "{EARLY}");
            assert_eq!(rx.recv(), Err(ErrorKind::PeerDead));
        },
    );
}

/// A close without a message, while the receiver happens to check the lock.
fn close_during_a_check() {
    let ring = Watched::new(2, true);
    let (tx, mut rx) = (ring.sender(false), ring.receiver(false));
    two(
        move || {
            time_passes();
            drop(tx);
        },
        move || assert_eq!(rx.recv(), Err(ErrorKind::Closed), "a close was taken for a death"),
    );
}

/// A bus's peer attaches and closes while the receiver happens to ask the kernel about it.
fn attach_and_close_during_a_check() {
    let ring = Watched::new(2, false);
    let mut rx = ring.receiver(false);
    two(
        move || {
            time_passes();
            drop(ring.sender(false));
        },
        move || assert_eq!(rx.recv(), Err(ErrorKind::Closed), "a close was taken for a death"),
    );
}

#[test]
fn what_was_sent_before_a_close_is_delivered_before_it() {
    holds(Some(4), || close(false));
    holds(Some(3), || close(true));
    holds(Some(3), close_seen_by_polling);
}

#[test]
fn what_was_sent_before_a_death_is_delivered_before_it() {
    holds(Some(3), || death(false));
    holds(Some(3), || death(true));
}

#[test]
fn a_close_is_not_taken_for_a_death() {
    holds(Some(3), close_during_a_check);
    holds(Some(3), attach_and_close_during_a_check);
}

#[test]
fn without_the_epoch_after_the_socket_a_close_is_taken_for_a_death() {
    fails_without(&[Step::EpochAfterDeath], "taken for a death", Some(3), attach_and_close_during_a_check);
}

#[test]
fn without_the_second_check_the_last_message_is_lost() {
    fails_without(&[Step::CheckAfterEnd], EARLY, Some(3), || close(false));
    fails_without(&[Step::CheckAfterEnd], EARLY, Some(3), || close(true));
    fails_without(&[Step::CheckAfterEnd], EARLY, Some(3), close_seen_by_polling);
    fails_without(&[Step::CheckAfterEnd], EARLY, Some(3), || death(true));
}

#[test]
fn without_the_wake_up_of_a_close_nobody_learns_of_it() {
    fails_without(&[Step::Announce], LOST, Some(3), || close(false));
}

#[test]
fn without_the_check_for_a_close_after_the_lock_a_close_is_taken_for_a_death() {
    fails_without(&[Step::CloseBeforeDeath], "taken for a death", Some(3), close_during_a_check);
}

/// The sender closes and a successor attaches and sends, all while the receiver waits and checks the lock.
fn succession(to_the_end: bool) {
    let ring = Watched::new(2, true);
    let (tx, mut rx) = (ring.sender(false), ring.receiver(false));
    two(
        move || {
            time_passes();
            drop(tx);
            let mut tx = ring.sender(false);
            tx.send(1);
            std::mem::forget(tx);
        },
        move || {
            let mut first = rx.recv();
            // A state that lasts until the successor is there.
            while to_the_end && first == Err(ErrorKind::Closed) {
                loom::thread::yield_now();
                first = rx.recv();
            }
            let fine = first == Ok(1) || (!to_the_end && first == Err(ErrorKind::Closed));
            assert!(fine, "a succession was taken for a death: {first:?}");
            std::mem::forget(rx);
        },
    );
}

#[test]
fn a_successor_is_waited_for_and_heard() {
    holds(Some(3), || succession(true));
    holds(Some(5), || succession(false));
}

#[test]
fn without_the_check_for_a_successor_a_succession_is_taken_for_a_death() {
    fails_without(&[Step::SuccessorBeforeDeath], "taken for a death", Some(5), || succession(false));
}

/// A sender that waits for room learns of the receiver's end.
#[test]
fn a_sender_that_waits_for_room_learns_of_the_receiver_s_end() {
    let full = |kill: bool| {
        let ring = Watched::new(2, false);
        let (mut tx, rx) = (ring.sender(false), ring.receiver(false));
        assert!(tx.try_send(1) && tx.try_send(2));
        two(
            move || {
                let end = tx.put(3, true, true).map_err(|error| error.kind());
                assert_eq!(end, Err(if kill { ErrorKind::PeerDead } else { ErrorKind::Closed }));
            },
            move || if kill { rx.kill() } else { drop(rx) },
        );
    };
    holds(Some(3), move || full(false));
    holds(Some(3), move || full(true));
}
