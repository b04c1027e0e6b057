//! One producer, one consumer, nobody sleeps: order, contents, and who may touch which bytes when.

use crate::{RACE, Watched, two};
use ramway_models::ErrorKind;
use ramway_models::{Step, fails_without, holds};

/// Three messages through a ring of two: both sides reuse the memory once. A side that finds it full or empty gives up.
fn pass(membarrier: bool) {
    let ring = Watched::new(2, false);
    let (mut tx, mut rx) = (ring.sender(membarrier), ring.receiver(membarrier));
    two(
        move || {
            let _ = (1..=3).take_while(|value| tx.try_send(*value)).count();
        },
        move || {
            let mut next = 1;
            for _ in 0..3 {
                match rx.try_recv() {
                    Ok(value) => {
                        assert_eq!(value, next);
                        next += 1;
                    }
                    Err(kind) => assert!(matches!(kind, ErrorKind::Empty | ErrorKind::Closed)),
                }
            }
        },
    );
}

#[test]
fn messages_arrive_whole_and_in_order() {
    holds(None, || pass(false));
}

#[test]
fn messages_arrive_whole_and_in_order_between_fence_free_processes() {
    holds(Some(3), || pass(true));
}

#[test]
fn without_release_a_payload_is_a_race() {
    fails_without(&[Step::Publish], RACE, Some(3), || pass(true));
}

#[test]
fn without_acquire_a_payload_is_a_race() {
    fails_without(&[Step::AcquirePosition], RACE, Some(3), || pass(true));
}

/// What is committed unflushed is seen after the flush, all of it.
#[test]
fn a_flush_publishes_all_that_was_committed() {
    holds(None, || {
        let ring = Watched::new(4, false);
        let (mut tx, mut rx) = (ring.sender(false), ring.receiver(false));
        two(
            move || {
                tx.put(1, false, false).unwrap();
                tx.put(2, false, false).unwrap();
                tx.tx.flush().unwrap();
            },
            move || {
                if rx.try_recv() == Ok(1) {
                    assert_eq!(rx.try_recv(), Ok(2));
                }
            },
        );
    });
}
