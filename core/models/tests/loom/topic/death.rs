//! A side that is killed, wherever it is, and what its successor finds; a slow subscriber that is ejected.

use super::gate::BROKEN;
use super::{LONG, OVERWRITTEN, Rx, Topic, Watch, kind};
use crate::two;
use ramway_models::topic::{Begin, Memory, Options};
use ramway_models::{
    ErrorKind, Mortal, Step, at_each_step, clock_runs, fails_without, fails_without_at_some_step, holds, process,
};

const MAY_EJECT: u32 = 2;

/// A nanosecond: whoever blocks at two checks of a publisher is ejected.
const AT_ONCE: u64 = 1;

/// A publisher is killed somewhere in its work: it comes, publishes a message, then two at once. Others read meanwhile, come
/// after it, and go on with its successor.
fn publisher_dies(mortal: Mortal) {
    let topic = Topic::new(8, 2, 0, Watch::Values);
    let mut first = topic.publisher();
    first.send(5);
    first.kill();
    let mut reliable = topic.subscriber(&Options::RELIABLE);
    let mut lossy = topic.subscriber(&Options { begin: Begin::Oldest, ..Options::LOSSY });
    assert_eq!((reliable.read(4), lossy.read(1)), (4, 1));
    let watched = topic.clone();
    let publisher = loom::thread::spawn(move || {
        process(1, || {
            mortal.run(|| {
                let mut tx = topic.publisher();
                tx.put(0, false, true).unwrap();
                tx.put(LONG, false, false).unwrap();
                tx.put(0, false, false).unwrap();
                tx.tx.flush().unwrap();
                tx.stop();
            });
            topic.memory.publisher_is_dead();
        });
    });
    process(0, || {
        reliable.read(2);
    });
    publisher.join().unwrap();
    process(0, || {
        let late = [Begin::Oldest, Begin::Now, Begin::History(1)]
            .map(|begin| watched.subscriber(&Options { begin, ..Options::LOSSY }));
        // Its frames begin elsewhere than those that were not published.
        let mut tx = watched.publisher();
        let last = Memory::next_seq(&tx.tx);
        assert!(tx.try_put(LONG));
        for mut rx in [reliable, lossy].into_iter().chain(late) {
            rx.read(8);
            assert_eq!(rx.next, last + 1, "{OVERWRITTEN}: the last one is missing");
            rx.stop();
        }
        tx.stop();
    });
}

#[test]
fn a_publisher_may_be_killed_anywhere() {
    at_each_step(Some(1), publisher_dies);
}

/// A publisher is killed with messages that it has not published; its successor's begin elsewhere.
fn unpublished_starts() {
    let topic = Topic::new(4, 1, 0, Watch::Values);
    let mut tx = topic.publisher();
    tx.send(2);
    (0..2).for_each(|_| tx.put(0, false, false).unwrap());
    tx.kill();
    let mut rx = topic.subscriber(&Options { begin: Begin::Oldest, ..Options::LOSSY });
    rx.next = 1;
    let mut tx = topic.publisher();
    assert!(tx.try_put(LONG) && tx.try_put(0));
    rx.read(4);
    assert_eq!(rx.next, 5, "{OVERWRITTEN}: the last one is missing");
    rx.stop();
    tx.stop();
}

#[test]
fn a_successor_takes_back_what_was_noted_and_never_published() {
    holds(None, unpublished_starts);
    fails_without(&[Step::StartsAgain], OVERWRITTEN, None, unpublished_starts);
}

/// The last published message tells a successor the next number.
fn unpublished_over_the_last() {
    let topic = Topic::new(4, 1, 0, Watch::Values);
    let mut tx = topic.publisher();
    assert!(tx.try_put(LONG));
    let fitted = (0..2).take_while(|_| tx.put(LONG, false, false).is_ok()).count();
    // The second one waits until the first is published.
    assert_eq!(fitted, 2);
    tx.kill();
    let mut tx = topic.publisher();
    assert_eq!(Memory::next_seq(&tx.tx), 3, "{OVERWRITTEN}");
    tx.send(1);
    tx.stop();
}

#[test]
fn the_last_published_message_stays_for_a_successor() {
    holds(None, unpublished_over_the_last);
    fails_without(&[Step::KeepLast], "", None, unpublished_over_the_last);
}

/// A subscriber is killed somewhere: it comes, reads, leaves. The publisher waits for it no longer than it lives.
fn subscriber_dies(mortal: Mortal) {
    let topic = Topic::new(4, 1, 0, Watch::Cells);
    let mut tx = topic.publisher();
    tx.send(4);
    let publisher = loom::thread::spawn(move || {
        process(1, || {
            tx.send(2);
            tx
        })
    });
    process(0, || {
        mortal.run(|| {
            let mut rx = topic.subscriber(&Options::RELIABLE);
            rx.read(1);
            drop(rx);
        });
        topic.memory.subscribers_are_dead();
    });
    let mut tx = publisher.join().unwrap();
    process(1, || tx.send(4));
    tx.stop();
}

#[test]
fn a_subscriber_may_be_killed_anywhere() {
    at_each_step(Some(1), subscriber_dies);
}

/// A durable subscriber is killed somewhere. The next one goes on where it was, or begins anew.
fn durable_dies(mortal: Mortal) {
    let topic = Topic::new(4, 1, 0, Watch::Cells);
    let mut tx = topic.publisher();
    tx.send(4);
    let publisher = move || {
        (0..2).take_while(|_| tx.try_send()).count();
        tx.stop();
    };
    two(
        move || {
            mortal.run(|| {
                let mut rx = topic.subscriber(&Options::DURABLE);
                rx.read(1);
                rx.stop();
            });
            topic.memory.subscribers_are_dead();
            let mut rx = topic.subscriber(&Options::DURABLE);
            assert!(rx.read(4) > 0, "{OVERWRITTEN}: nothing");
            rx.stop();
        },
        publisher,
    );
}

#[test]
fn a_durable_subscriber_may_be_killed_anywhere() {
    at_each_step(Some(1), durable_dies);
}

#[test]
fn without_keeping_its_cursor_last_of_all_its_successor_is_overwritten() {
    fails_without_at_some_step(&[Step::DurableLast], BROKEN, Some(1), durable_dies);
}

/// A durable subscriber goes, and the log fills up to its cursor, in the middle of a sixteenth. One takes its place while
/// the publisher goes on.
fn resumed() {
    let topic = Topic::new(32, 1, 0, Watch::Cells);
    let mut tx = topic.publisher();
    let mut rx = topic.subscriber(&Options::DURABLE);
    tx.send(32);
    rx.read(1);
    rx.kill();
    tx.send(1);
    assert!(!tx.try_send());
    two(
        move || {
            (0..2).for_each(|_| {
                tx.try_send();
            });
            tx.stop();
        },
        move || {
            let mut rx = topic.subscriber(&Options::DURABLE);
            rx.next = 2;
            assert_eq!(rx.read(2), 2, "{OVERWRITTEN}");
            rx.stop();
        },
    );
}

#[test]
fn a_durable_subscriber_goes_on_where_its_predecessor_was() {
    holds(Some(2), resumed);
}

#[test]
fn two_subscribers_with_one_label_are_refused() {
    holds(None, || {
        let topic = Topic::new(4, 2, 0, Watch::Values);
        let rx = topic.subscriber(&Options::DURABLE);
        assert_eq!(kind(topic.try_subscriber(&Options::DURABLE).map(Rx::stop)), Err(ErrorKind::Busy));
        rx.stop();
    });
}

/// A subscriber blocks a publisher that checks it; it was killed, or leaves, and another one takes its slot.
fn slot_changes_hands(killed: bool) {
    let topic = Topic::new(4, 1, 0, Watch::Cells);
    let mut tx = topic.publisher();
    let first = topic.subscriber(&Options::RELIABLE);
    tx.send(4);
    assert!(!tx.try_send());
    topic.memory.time_passes();
    let first = if killed {
        first.kill();
        None
    } else {
        Some(first)
    };
    two(
        move || {
            tx.try_send();
            tx.stop();
        },
        move || {
            drop(first);
            let mut rx = topic.subscriber(&Options::RELIABLE);
            assert_eq!(rx.read(1), 1, "{OVERWRITTEN}");
            rx.stop();
        },
    );
}

#[test]
fn a_subscriber_is_not_taken_for_its_dead_predecessor() {
    holds(Some(2), || slot_changes_hands(true));
    holds(Some(2), || slot_changes_hands(false));
}

#[test]
fn without_the_state_before_the_lock_and_an_epoch_that_stays_it_is() {
    fails_without(&[Step::StateBeforeLock], BROKEN, Some(4), || slot_changes_hands(true));
    fails_without(&[Step::KeepEpoch], BROKEN, Some(3), || slot_changes_hands(false));
}

/// What a subscriber reads that may be ejected meanwhile. What it received and what it lost is what was sent.
fn read_or_lagged(rx: &mut Rx, most: usize) {
    for _ in 0..most {
        match rx.copy(false) {
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::Lagged => rx.next += error.lost().unwrap(),
                ErrorKind::Empty => return,
                _ => panic!("{OVERWRITTEN}: {error}"),
            },
        }
    }
}

/// A subscriber blocks a publisher that ejects it while it reads.
fn ejected(reads: usize) {
    let topic = Topic::new(4, 1, MAY_EJECT, Watch::Shadows);
    let mut tx = topic.publisher_with(false, AT_ONCE);
    let mut rx = topic.subscriber(&Options::RELIABLE);
    rx.next = 1;
    assert!(tx.try_put(8) && tx.try_put(10) && !tx.try_put(8));
    topic.memory.time_ticks();
    let publisher = loom::thread::spawn(move || {
        process(1, || {
            let _ = tx.try_put(8) || tx.try_put(8);
            let next = Memory::next_seq(&tx.tx);
            tx.stop();
            next
        })
    });
    process(0, || read_or_lagged(&mut rx, reads));
    let next = publisher.join().unwrap();
    process(0, || {
        read_or_lagged(&mut rx, 4);
        assert_eq!(rx.next, next, "{OVERWRITTEN}: the last one is missing");
        rx.stop();
    });
}

#[test]
fn a_subscriber_that_is_ejected_while_it_reads_delivers_nothing_of_it() {
    holds(Some(3), || ejected(2));
}

#[test]
fn without_the_check_of_its_state_it_delivers_what_was_overwritten() {
    fails_without(&[Step::EjectedCheck], OVERWRITTEN, Some(3), || ejected(2));
}

/// A publisher waits for a subscriber that never reads.
fn never_reads() {
    let topic = Topic::new(4, 1, MAY_EJECT, Watch::Shadows);
    let mut tx = topic.publisher_with(false, AT_ONCE);
    let rx = topic.subscriber(&Options::RELIABLE);
    assert!(tx.try_put(8) && tx.try_put(10));
    clock_runs();
    process(0, || tx.put(8, true, true).unwrap());
    rx.stop();
    tx.stop();
}

#[test]
fn a_subscriber_that_never_reads_is_ejected() {
    holds(None, never_reads);
    fails_without(&[Step::Eject], "maximum number of branches", None, never_reads);
}

/// A durable subscriber is ejected while it is away, and told once how many it has lost when it comes back.
#[test]
fn a_durable_subscriber_that_was_ejected_is_told() {
    holds(None, || {
        let topic = Topic::new(4, 1, MAY_EJECT, Watch::Shadows);
        let mut tx = topic.publisher_with(false, AT_ONCE);
        let mut rx = topic.subscriber(&Options::DURABLE);
        assert!(tx.try_put(8) && tx.try_put(10));
        assert_eq!(kind(rx.copy(false)), Ok(1));
        rx.kill();
        assert!(tx.try_put(8) && !tx.try_put(10));
        topic.memory.time_passes();
        assert!(tx.try_put(10) && tx.try_put(8) && tx.try_put(10));
        let mut rx = topic.subscriber(&Options::DURABLE);
        let lagged = rx.copy(false).unwrap_err();
        // It had received the first. The newest one is 6, and the half before it is claimed.
        assert_eq!((lagged.kind(), kind(rx.copy(false))), (ErrorKind::Lagged, Ok(2 + lagged.lost().unwrap())));
        rx.stop();
        tx.stop();
    });
}
