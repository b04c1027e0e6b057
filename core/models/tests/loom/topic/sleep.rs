//! Sleeping on a topic: a wake-up that is lost is a deadlock.

use super::{Topic, Watch, kind};
use crate::{LOST, two};
use ramway_models::topic::{Begin, Options, Policy};
use ramway_models::{ErrorKind, Step, fails_without, forbid_membarrier, holds, interrupt_point, process};

/// One cell for each message: nobody waits for room.
fn topic(slots: usize) -> Topic {
    Topic::new(8, slots, 0, Watch::Values)
}

/// A message to a subscriber that blocks.
fn sleeps(policy: Policy, publisher: bool, subscriber: bool) {
    let topic = topic(1);
    let mut tx = topic.publisher_with(publisher, 0);
    let mut rx = topic.subscriber(&Options { policy, begin: Begin::Now, membarrier: subscriber, ..Options::RELIABLE });
    two(
        move || {
            interrupt_point();
            tx.send(1);
            interrupt_point();
            tx.stop();
        },
        move || {
            assert_eq!(kind(rx.take(true)), Ok(1));
            rx.stop();
        },
    );
}

#[test]
fn a_subscriber_of_any_policy_is_woken() {
    for policy in [Policy::Reliable, Policy::Lossy, Policy::Latest] {
        holds(Some(3), move || sleeps(policy, false, false));
        holds(Some(3), move || sleeps(policy, true, true));
    }
    holds(Some(3), || sleeps(Policy::Lossy, false, true));
    holds(Some(3), || sleeps(Policy::Lossy, true, false));
}

#[test]
fn without_an_order_on_either_side_a_wake_up_is_lost() {
    fails_without(&[Step::WakerFence], LOST, Some(3), || sleeps(Policy::Lossy, false, false));
    fails_without(&[Step::SleeperFence], LOST, Some(3), || sleeps(Policy::Lossy, false, false));
    fails_without(&[Step::Membarrier], LOST, Some(3), || sleeps(Policy::Lossy, true, true));
    fails_without(&[Step::Recheck], LOST, Some(3), || sleeps(Policy::Lossy, false, false));
    fails_without(&[Step::Announce], LOST, Some(3), || sleeps(Policy::Lossy, false, false));
}

/// A subscriber that sleeps before each message: the publisher comes to fence, and then the subscriber does without its
/// membarrier. In the models two sleeps are often.
fn sleeps_often(count: u64) {
    let topic = topic(1);
    let mut tx = topic.publisher_with(true, 0);
    let mut rx = topic.subscriber(&Options { begin: Begin::Now, membarrier: true, ..Options::LOSSY });
    two(
        move || {
            for _ in 0..count {
                interrupt_point();
                tx.send(1);
            }
            interrupt_point();
            tx.stop();
        },
        move || {
            for seq in 1..=count {
                assert_eq!(kind(rx.take(true)), Ok(seq));
            }
            rx.stop();
        },
    );
}

#[test]
fn a_subscriber_that_sleeps_often_is_woken_each_time() {
    holds(Some(1), || sleeps_often(3));
    holds(Some(1), || sleeps_often(4));
}

#[test]
fn without_the_fence_of_the_publisher_it_is_not() {
    fails_without(&[Step::WakerFence], LOST, Some(2), || sleeps_often(3));
}

/// Two that sleep on the one word. The second message is sent once the first subscriber has the first one.
fn two_sleepers() {
    let topic = topic(2);
    let mut tx = topic.publisher();
    let options = Options { begin: Begin::Now, ..Options::LOSSY };
    let (mut one, mut other) = (topic.subscriber(&options), topic.subscriber(&options));
    let one = loom::thread::spawn(move || {
        process(1, || {
            assert_eq!(kind(one.take(true)), Ok(1));
            one.stop();
        });
    });
    let other = loom::thread::spawn(move || {
        process(2, || {
            assert_eq!(kind(other.take(true)), Ok(1));
            assert_eq!(kind(other.take(true)), Ok(2));
            other.stop();
        });
    });
    process(0, || tx.send(1));
    one.join().unwrap();
    process(0, || tx.send(1));
    other.join().unwrap();
    tx.stop();
}

#[test]
fn two_subscribers_are_both_woken() {
    holds(Some(2), two_sleepers);
}

#[test]
fn with_a_word_that_counts_nothing_one_of_them_is_not() {
    fails_without(&[Step::CountWakeUps], LOST, Some(3), two_sleepers);
}

/// A subscriber that cannot membarrier comes while the publisher is fence-free, and sleeps.
fn comes(subscriber: bool, forbid: bool) {
    let topic = topic(1);
    let mut tx = topic.publisher_with(true, 0);
    two(
        move || {
            interrupt_point();
            tx.send(1);
            interrupt_point();
            tx.stop();
        },
        move || {
            let mut rx = topic.subscriber(&Options { membarrier: subscriber, ..Options::RELIABLE });
            if forbid {
                forbid_membarrier();
            }
            assert_eq!(kind(rx.take(true)), Ok(1));
            rx.stop();
        },
    );
}

#[test]
fn a_subscriber_that_comes_to_a_fence_free_publisher_is_woken() {
    holds(Some(2), || comes(false, false));
    holds(Some(2), || comes(true, false));
    holds(Some(2), || comes(true, true));
}

#[test]
fn without_short_intervals_it_is_not() {
    fails_without(&[Step::ShortIntervals], LOST, Some(3), || comes(false, false));
    fails_without(&[Step::ShortIntervals], LOST, Some(3), || comes(true, true));
}

/// A publisher that waits for room, and a subscriber that gives back all that it has.
fn room(publisher: bool, subscriber: bool) {
    let topic = Topic::new(4, 1, 0, Watch::Cells);
    let mut tx = topic.publisher_with(publisher, 0);
    let mut rx = topic.subscriber(&Options { membarrier: subscriber, ..Options::RELIABLE });
    tx.send(4);
    two(
        move || {
            tx.send(1);
            tx.stop();
        },
        move || {
            interrupt_point();
            assert_eq!(rx.read(1), 1);
            interrupt_point();
            rx.stop();
        },
    );
}

#[test]
fn a_publisher_is_woken_when_there_is_room() {
    holds(Some(3), || room(false, false));
    holds(Some(3), || room(true, true));
    holds(Some(3), || room(false, true));
    holds(Some(3), || room(true, false));
}

#[test]
fn without_an_order_on_either_side_a_publisher_waits_for_ever() {
    fails_without(&[Step::WakerFence], LOST, Some(3), || room(false, false));
    fails_without(&[Step::SleeperFence], LOST, Some(3), || room(false, false));
    fails_without(&[Step::Membarrier], LOST, Some(3), || room(true, true));
    fails_without(&[Step::Recheck], LOST, Some(3), || room(false, false));
}

/// A publisher that waits for a subscriber.
#[test]
fn a_publisher_that_waits_for_a_subscriber_is_woken() {
    holds(Some(3), || {
        let topic = topic(1);
        let mut tx = topic.publisher();
        two(
            move || {
                tx.tx.wait_for_subscribers(1).unwrap();
                tx.stop();
            },
            move || topic.subscriber(&Options::RELIABLE).stop(),
        );
    });
}

/// One message, then an orderly close.
fn close() {
    let topic = topic(1);
    let mut tx = topic.publisher();
    let mut rx = topic.subscriber(&Options::RELIABLE);
    two(
        move || {
            tx.send(1);
            drop(tx);
        },
        move || {
            assert_eq!(kind(rx.take(true)), Ok(1), "the end came before the last message");
            assert_eq!(kind(rx.take(true)), Err(ErrorKind::Closed));
            rx.stop();
        },
    );
}

#[test]
fn a_close_comes_after_the_last_message() {
    holds(Some(3), close);
}

#[test]
fn without_the_second_check_or_the_wake_up_of_a_close_it_does_not() {
    fails_without(&[Step::CheckAfterEnd], "the end came before", Some(3), close);
    fails_without(&[Step::Announce], LOST, Some(3), close);
}

/// Another thread ends the wait of one of two subscribers.
#[test]
fn a_waker_ends_the_wait_of_its_own_subscriber() {
    holds(Some(2), || {
        let topic = topic(2);
        let mut tx = topic.publisher();
        let options = Options { begin: Begin::Now, ..Options::LOSSY };
        let (mut rx, mut other) = (topic.subscriber(&options), topic.subscriber(&options));
        let waker = rx.rx.waker();
        let rx = loom::thread::spawn(move || {
            process(1, || {
                assert_eq!(kind(rx.take(true)), Err(ErrorKind::Interrupted));
                rx.stop();
            });
        });
        let other = loom::thread::spawn(move || {
            process(2, || {
                assert_eq!(kind(other.take(true)), Ok(1));
                other.stop();
            });
        });
        process(0, || waker.wake());
        rx.join().unwrap();
        process(0, || tx.send(1));
        other.join().unwrap();
        tx.stop();
    });
}

/// An event loop that polls a subscriber's descriptor.
fn polls(subscriber: bool) {
    let topic = topic(1);
    let mut tx = topic.publisher_with(subscriber, 0);
    let mut rx = topic.subscriber(&Options { begin: Begin::Now, membarrier: subscriber, ..Options::LOSSY });
    let poll = rx.rx.readiness().unwrap().poll();
    two(
        move || {
            interrupt_point();
            tx.send(1);
            interrupt_point();
            tx.stop();
        },
        move || {
            while !rx.found(|rx| rx.take(false)) {
                poll.readable();
            }
            rx.stop();
        },
    );
}

#[test]
fn an_event_loop_sees_a_message_of_a_topic() {
    holds(Some(3), || polls(false));
    holds(Some(3), || polls(true));
}

#[test]
fn without_the_check_after_arming_it_does_not() {
    fails_without(&[Step::Recheck], LOST, Some(3), || polls(false));
}
