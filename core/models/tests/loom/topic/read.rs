//! Subscribers that nobody waits for: what they deliver was not overwritten while they copied it.

use super::{LONG, OVERWRITTEN, Topic, Tx, Watch, kind};
use crate::two;
use ramway_models::topic::{Begin, Memory, Options};
use ramway_models::{ErrorKind, Step, fails_without, holds, process};

/// A message in the cells from `cell` on: its length tells its cell.
fn put(tx: &mut Tx, cell: usize) {
    assert!(tx.try_put(8 + cell));
}

/// A full log of `frames` long messages, and a subscriber at its first one that reads while the publisher goes on. In the
/// end it has received or counted as lost all that was sent.
fn overtaken(frames: usize, sent: usize, reads: usize) {
    let topic = Topic::new(2 * frames, 1, 0, Watch::Shadows);
    let mut tx = topic.publisher();
    (0..frames).for_each(|frame| put(&mut tx, 2 * frame));
    let mut rx = topic.subscriber(&Options { begin: Begin::Oldest, ..Options::LOSSY });
    rx.next = 1;
    let publisher = loom::thread::spawn(move || {
        process(1, || {
            (0..sent).for_each(|frame| put(&mut tx, 2 * (frame % frames)));
            tx.stop();
        });
    });
    process(0, || {
        rx.copy_all(reads);
    });
    publisher.join().unwrap();
    process(0, || {
        rx.copy_all(frames);
        assert_eq!(rx.next as usize, frames + sent + 1, "{OVERWRITTEN}: the last one is missing");
        rx.stop();
    });
}

#[test]
fn what_a_lossy_subscriber_delivers_is_whole_and_its_gaps_are_exact() {
    holds(Some(3), || overtaken(4, 2, 2));
    // Frames of half the log: an overtaken one resumes at the newest message.
    holds(Some(3), || overtaken(2, 2, 2));
    holds(Some(2), || overtaken(2, 3, 2));
}

#[test]
fn without_the_check_after_the_copy_messages_are_torn() {
    fails_without(&[Step::OvertakenAgain], OVERWRITTEN, Some(3), || overtaken(4, 2, 2));
}

#[test]
fn without_a_claim_before_the_data_and_their_order_messages_are_torn() {
    fails_without(&[Step::Claim], OVERWRITTEN, Some(3), || overtaken(4, 2, 2));
    fails_without(&[Step::ClaimFence], OVERWRITTEN, Some(3), || overtaken(4, 2, 2));
}

/// Short messages are overwritten by a long one, whose payload is no header.
fn in_the_middle() {
    let topic = Topic::new(4, 1, 0, Watch::Values);
    let mut tx = topic.publisher();
    tx.send(4);
    let mut rx = topic.subscriber(&Options { begin: Begin::Oldest, ..Options::LOSSY });
    rx.read(1);
    two(
        move || {
            let mut slot = tx.tx.try_reserve(LONG).unwrap();
            Memory::touch(&slot);
            slot.fill(0xFF);
            slot.commit(LONG).unwrap();
            tx.stop();
        },
        move || {
            let read = rx.rx.try_recv().map(|message| message.seq());
            assert!(read.is_ok(), "{OVERWRITTEN}: {read:?}");
            rx.stop();
        },
    );
}

#[test]
fn a_header_is_believed_only_after_a_check() {
    holds(None, in_the_middle);
}

#[test]
fn without_the_check_before_it_a_payload_is_taken_for_a_header() {
    fails_without(&[Step::OvertakenFirst], OVERWRITTEN, Some(3), in_the_middle);
}

/// The newest message, read again and again while the publisher goes on.
fn newest(frames: usize, sent: usize) {
    let topic = Topic::new(2 * frames, 1, 0, Watch::Shadows);
    let mut tx = topic.publisher();
    put(&mut tx, 0);
    let mut rx = topic.subscriber(&Options::LATEST);
    two(
        move || {
            (1..=sent).for_each(|frame| put(&mut tx, 2 * (frame % frames)));
            tx.stop();
        },
        move || {
            let first = rx.latest().expect(OVERWRITTEN);
            let second = rx.latest().expect(OVERWRITTEN);
            assert!(first <= second, "{OVERWRITTEN}: back");
            // A newer one than was read, or none.
            match kind(rx.copy(false)) {
                Ok(third) => assert!(second < third, "{OVERWRITTEN}: again"),
                Err(kind) => assert_eq!(kind, ErrorKind::Empty),
            }
            rx.stop();
        },
    );
}

#[test]
fn the_newest_message_is_whole_and_never_an_older_one() {
    holds(Some(2), || newest(2, 2));
    holds(Some(2), || newest(4, 3));
}

#[test]
fn without_release_of_its_place_the_newest_message_is_not_there() {
    fails_without(&[Step::PublishLast], OVERWRITTEN, Some(3), || newest(2, 2));
}

#[test]
fn without_the_check_after_the_copy_the_newest_message_is_torn() {
    fails_without(&[Step::OvertakenAgain], OVERWRITTEN, Some(3), || newest(2, 2));
}

/// A publisher that has committed two long messages which it has not published yet.
fn unpublished() {
    let topic = Topic::new(4, 1, 0, Watch::Shadows);
    let mut tx = topic.publisher();
    put(&mut tx, 0);
    let mut rx = topic.subscriber(&Options::LATEST);
    two(
        move || {
            (0..2).for_each(|frame| tx.put(8 + 2 * ((frame + 1) % 2), false, false).unwrap());
            tx.stop();
        },
        move || {
            assert!(rx.latest().is_ok(), "{OVERWRITTEN}: the newest message is gone");
            rx.stop();
        },
    );
}

#[test]
fn the_newest_message_stays_until_there_is_a_newer_one() {
    holds(Some(3), unpublished);
}

#[test]
fn without_keeping_the_last_published_message_there_is_none() {
    fails_without(&[Step::KeepLast], OVERWRITTEN, Some(3), unpublished);
}

/// One comes that begins at a number while the publisher goes on.
fn begins(begin: Begin) {
    let topic = Topic::new(4, 1, 0, Watch::Values);
    let mut tx = topic.publisher();
    tx.send(4);
    two(
        move || {
            tx.send(2);
            tx.stop();
        },
        move || {
            let mut rx = topic.subscriber(&Options { begin, ..Options::LOSSY });
            rx.read(2);
            rx.stop();
        },
    );
}

#[test]
fn a_lossy_subscriber_begins_while_the_publisher_goes_on() {
    holds(Some(2), || begins(Begin::Oldest));
    holds(Some(2), || begins(Begin::Now));
    holds(Some(2), || begins(Begin::History(2)));
    holds(Some(2), || begins(Begin::AfterSeq(2)));
}
