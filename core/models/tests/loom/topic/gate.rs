//! A publisher and subscribers that hold it back: what lies at a cursor or after it is not overwritten.

use super::{LONG, OVERWRITTEN, Topic, Watch};
use crate::{LOST, RACE, two};
use ramway_models::topic::{Begin, Options};
use ramway_models::{Step, fails_without, holds};

/// A race that loom sees, or values that are wrong.
pub(super) const BROKEN: &str = "Causality violation|not what was sent|not what any correct";

/// A full log without subscribers; one comes while the publisher goes on.
fn join_under_way(sent: usize) {
    let topic = Topic::new(4, 1, 0, Watch::Cells);
    let mut tx = topic.publisher();
    tx.send(4);
    two(
        move || {
            (0..sent).take_while(|_| tx.try_send()).count();
            tx.stop();
        },
        move || {
            let mut rx = topic.subscriber(&Options::RELIABLE);
            rx.read(2);
            rx.stop();
        },
    );
}

#[test]
fn what_a_subscriber_begins_at_is_not_overwritten() {
    holds(Some(3), || join_under_way(2));
}

#[test]
fn without_either_fence_or_what_follows_it_a_joiner_is_overwritten() {
    fails_without(&[Step::ClaimFence], BROKEN, Some(3), || join_under_way(2));
    fails_without(&[Step::ChangesAgain], BROKEN, Some(3), || join_under_way(2));
    fails_without(&[Step::JoinFence], BROKEN, Some(3), || join_under_way(2));
    fails_without(&[Step::JoinClaim], BROKEN, Some(3), || join_under_way(2));
}

/// The same with a publisher that goes on again and again, so that the subscriber is overtaken while it comes.
fn join_again() {
    let topic = Topic::new(4, 1, 0, Watch::Cells);
    let mut tx = topic.publisher();
    tx.send(4);
    two(
        move || {
            for _ in 0..3 {
                tx.try_send();
                loom::thread::yield_now();
            }
            tx.stop();
        },
        move || {
            let mut rx = topic.subscriber(&Options::RELIABLE);
            rx.read(1);
            rx.stop();
        },
    );
}

#[test]
fn a_subscriber_that_is_overtaken_while_it_comes_chooses_again() {
    holds(Some(2), join_again);
}

#[test]
fn without_counting_the_second_choice_it_is_overwritten() {
    fails_without(&[Step::BumpAgain], BROKEN, Some(3), join_again);
}

/// A full log and a subscriber that gives a message back while the publisher wants to go on. Both are fence-free: a fence
/// beside a position would order what the position does not.
fn release() {
    let topic = Topic::new(4, 1, 0, Watch::Cells);
    let mut tx = topic.publisher_with(true, 0);
    let mut rx = topic.subscriber(&Options { membarrier: true, ..Options::RELIABLE });
    tx.send(4);
    two(
        move || {
            (0..2).take_while(|_| tx.try_send()).count();
            tx.stop();
        },
        move || {
            assert_eq!(rx.read(2), 2);
            rx.stop();
        },
    );
}

#[test]
fn what_is_given_back_was_read() {
    holds(Some(3), release);
}

/// The same where the publisher has claimed all of its next sixteenth before, and fences no more.
fn release_within_a_claim() {
    let topic = Topic::new(32, 1, 0, Watch::Cells);
    let mut tx = topic.publisher_with(true, 0);
    let mut rx = topic.subscriber(&Options { membarrier: true, ..Options::RELIABLE });
    tx.send(32);
    rx.read(1);
    tx.send(1);
    two(
        move || {
            tx.try_send();
            tx.stop();
        },
        move || {
            assert_eq!(rx.read(1), 1);
            rx.stop();
        },
    );
}

#[test]
fn what_is_given_back_within_a_claim_was_read() {
    holds(Some(3), release_within_a_claim);
}

#[test]
fn without_release_and_acquire_of_a_cursor_it_was_not() {
    fails_without(&[Step::Publish], RACE, Some(3), release);
    fails_without(&[Step::AcquirePosition], RACE, Some(3), release_within_a_claim);
}

/// A publisher that waits for room: the subscriber reads, or leaves.
fn room(leave: bool) {
    let topic = Topic::new(4, 1, 0, Watch::Cells);
    let mut tx = topic.publisher();
    let mut rx = topic.subscriber(&Options::RELIABLE);
    tx.send(4);
    two(
        move || {
            tx.send(1);
            tx.stop();
        },
        move || {
            if leave {
                drop(rx);
            } else {
                assert_eq!(rx.read(4), 4);
                rx.stop();
            }
        },
    );
}

#[test]
fn a_publisher_that_waits_for_room_goes_on() {
    holds(Some(3), || room(false));
    holds(Some(3), || room(true));
}

#[test]
fn without_the_wake_up_of_who_leaves_it_waits_for_ever() {
    fails_without(&[Step::Announce], LOST, Some(3), || room(true));
}

/// One subscriber reads, the other comes: the slower one decides.
fn two_subscribers() {
    let topic = Topic::new(4, 2, 0, Watch::Cells);
    let mut tx = topic.publisher();
    let mut first = topic.subscriber(&Options::RELIABLE);
    tx.send(4);
    two(
        move || {
            first.read(1);
            tx.try_send();
            tx.stop();
            first.stop();
        },
        move || {
            let mut second = topic.subscriber(&Options::RELIABLE);
            assert!(second.read(1) == 1, "{OVERWRITTEN}");
            second.stop();
        },
    );
}

#[test]
fn the_slowest_subscriber_decides() {
    holds(Some(3), two_subscribers);
}

/// Two messages lie in each sixteenth of this log. A reader that gives back one at a time has the publisher find out after
/// each how far it may write, and so note it. Which message does one begin at that comes after so many?
fn history(sent: usize, begin: Begin) -> u64 {
    let topic = Topic::new(32, 2, 0, Watch::Values);
    let mut tx = topic.publisher();
    let mut reader = topic.subscriber(&Options::RELIABLE);
    tx.send(32);
    (32..sent).for_each(|_| {
        reader.read(1);
        tx.send(1);
    });
    let mut rx = topic.subscriber(&Options { begin, ..Options::RELIABLE });
    let seq = rx.take(false).unwrap();
    tx.stop();
    reader.stop();
    rx.stop();
    seq
}

#[test]
fn a_subscriber_begins_where_it_is_asked_to() {
    holds(None, || {
        // The 65th message overwrites the sixteenth that the 33rd begins.
        assert_eq!(history(65, Begin::Oldest), 35);
        assert_eq!(history(65, Begin::History(2)), 64);
        assert_eq!(history(65, Begin::AfterSeq(40)), 41);
    });
}

#[test]
fn without_keeping_what_was_noted_in_a_lap_less_history_is_found() {
    fails_without(&[Step::StartOfLap], "left: 36", None, || assert_eq!(history(65, Begin::Oldest), 35));
}

/// A publisher holds back a message longer than what is given back so far.
#[test]
fn a_long_message_waits_for_all_of_its_room() {
    holds(Some(3), || {
        let topic = Topic::new(4, 1, 0, Watch::Cells);
        let mut tx = topic.publisher();
        let mut rx = topic.subscriber(&Options::RELIABLE);
        tx.send(4);
        two(
            move || {
                tx.put(LONG, true, true).unwrap();
                tx.stop();
            },
            move || {
                assert_eq!(rx.read(4), 4);
                rx.stop();
            },
        );
    });
}
