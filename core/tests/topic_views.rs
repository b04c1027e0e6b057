//! What a binding does with a subscriber while it holds frames.

mod support;

use ramway::ring::raw::{RawEndpoint, WaitLimit};
use ramway::{ErrorKind, Policy, Topic};
use std::time::Duration;
use support::Dir;

#[test]
fn a_subscriber_that_closes_with_frames_lent_out_gates_until_it_goes() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = Topic::create(&name).capacity(4096).publisher().unwrap();
    let mut subscriber = Topic::open(&name).subscriber().unwrap();
    publisher.send(0, b"kept").unwrap();
    let frame = subscriber.raw().recv(WaitLimit::None).unwrap();
    subscriber.say_closed();
    let mut sent = 0;
    while publisher.try_send(0, &[1; 1000]).is_ok() {
        sent += 1;
        assert!(sent < 100, "the publisher waits for nobody");
    }
    // SAFETY: not given back, and the handle is there.
    assert_eq!(unsafe { std::slice::from_raw_parts(frame.data, frame.len) }, b"kept");
    assert!(publisher.subscribers()[0].alive);
    drop(subscriber);
    publisher.send_timeout(0, &[1; 1000], Duration::from_secs(60)).unwrap();
    assert_eq!(publisher.subscribers(), []);
}

#[test]
fn a_subscriber_that_closes_with_nothing_lent_out_gates_no_longer() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = Topic::create(&name).capacity(4096).publisher().unwrap();
    let mut subscriber = Topic::open(&name).subscriber().unwrap();
    publisher.send(0, b"given back").unwrap();
    subscriber.raw().recv(WaitLimit::None).unwrap();
    subscriber.raw().release();
    subscriber.say_closed();
    for _ in 0..100 {
        publisher.try_send(0, &[1; 1000]).unwrap();
    }
    drop(subscriber);
}

#[test]
fn who_holds_frames_may_move_on_to_the_newest_message() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = Topic::create(&name).capacity(4096).publisher().unwrap();
    let mut subscriber = Topic::open(&name).subscriber().unwrap();
    for number in 1..=10_u64 {
        publisher.send_tagged(0, number, &number.to_le_bytes()).unwrap();
    }
    let first = subscriber.raw().recv(WaitLimit::None).unwrap();
    let end = subscriber.raw().position();
    assert_eq!(subscriber.skip_to_newest_after_held().unwrap(), 8);
    let newest = subscriber.raw().recv_more(WaitLimit::None).unwrap();
    assert_eq!((newest.stamp.seq, newest.stamp.lost), (10, 0));
    // SAFETY: neither is given back.
    let bytes = |frame: &ramway::ring::consumer::Frame<Topic>| unsafe {
        std::slice::from_raw_parts(frame.data, frame.len).to_vec()
    };
    assert_eq!((bytes(&first), bytes(&newest)), (1_u64.to_le_bytes().to_vec(), 10_u64.to_le_bytes().to_vec()));
    assert_eq!(publisher.subscribers()[0].lag.unwrap().messages, 10, "what is held, and what was left out after it");
    subscriber.raw().release_until(end);
    assert_eq!(publisher.subscribers()[0].lag.unwrap().messages, 9);
    subscriber.raw().release();
    assert_eq!(publisher.subscribers()[0].lag.unwrap().messages, 0);
    assert_eq!(subscriber.raw().recv(WaitLimit::None).unwrap_err().kind(), ErrorKind::Empty);
}

#[test]
fn only_the_subscriber_that_is_furthest_behind_is_in_the_way() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = Topic::create(&name).capacity(4096).publisher().unwrap();
    let mut near = Topic::open(&name).subscriber().unwrap();
    let far = Topic::open(&name).subscriber().unwrap();
    let mut sent = 0;
    while publisher.try_send(0, &[1; 100]).is_ok() {
        sent += 1;
    }
    let blocked = std::thread::spawn(move || {
        publisher.send(0, &[1; 100]).unwrap();
        publisher
    });
    near.raw().recv(WaitLimit::None).unwrap();
    near.raw().release();
    for _ in 1..sent {
        near.raw().recv_more(WaitLimit::None).unwrap();
    }
    std::thread::sleep(Duration::from_millis(20));
    assert!(!near.raw().sender_waits(), "the other one is further behind");
    drop(far);
    let began = std::time::Instant::now();
    while !blocked.is_finished() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut publisher = blocked.join().unwrap();
    while publisher.try_send(0, &[1; 100]).is_ok() {
        near.raw().recv_more(WaitLimit::None).unwrap();
    }
    let blocked = std::thread::spawn(move || publisher.send(0, &[1; 100]).unwrap());
    while near.raw().recv_more(WaitLimit::None).is_ok() {}
    while !near.raw().sender_waits() {
        assert!(began.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(1));
    }
    near.raw().release();
    blocked.join().unwrap();
}

#[test]
fn what_is_lost_before_a_message_counts_once_however_often_it_is_received() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = Topic::create(&name).publisher().unwrap();
    let mut subscriber = Topic::open(&name).subscriber().unwrap();
    publisher.send(0, b"one").unwrap();
    publisher.skip_seq(5).unwrap();
    publisher.send(0, b"seven").unwrap();
    publisher.send(0, b"eight").unwrap();
    subscriber.raw().recv(WaitLimit::None).unwrap();
    let end = subscriber.raw().position();
    for _ in 0..3 {
        let frame = subscriber.raw().recv_more(WaitLimit::None).unwrap();
        assert_eq!((frame.stamp.seq, frame.stamp.lost, subscriber.lost()), (7, 5, 5));
        let frame = subscriber.raw().recv_more(WaitLimit::None).unwrap();
        assert_eq!((frame.stamp.seq, frame.stamp.lost, subscriber.lost()), (8, 0, 5));
        subscriber.raw().unread(Some(end));
        assert_eq!(subscriber.lost(), 0);
    }
    subscriber.raw().release();
    let too_short = subscriber.recv_into_slice(&mut [0; 2]).unwrap_err();
    assert_eq!((too_short.kind(), subscriber.lost()), (ErrorKind::TooLarge, 0));
    assert_eq!(subscriber.recv().unwrap().lost(), 5);
    assert_eq!(subscriber.recv().unwrap().lost(), 0);
    assert_eq!(subscriber.lost(), 5);
}

/// Where nothing was received since, no frame may lie there, from which the next number could be read.
#[test]
fn what_was_not_received_is_not_received_again_and_what_is_lost_after_it_counts() {
    for policy in [Policy::Reliable, Policy::Lossy] {
        let dir = Dir::new();
        let name = dir.at("topic");
        let mut publisher = Topic::create(&name).publisher().unwrap();
        let mut subscriber = Topic::open(&name).policy(policy).subscriber().unwrap();
        publisher.send(0, b"one").unwrap();
        assert_eq!(subscriber.recv().unwrap().seq(), 1);
        subscriber.raw().unread(None);
        publisher.skip_seq(3).unwrap();
        publisher.send(0, b"five").unwrap();
        let five = subscriber.recv().unwrap();
        assert_eq!((five.seq(), five.lost()), (5, 3), "{policy:?}");
    }
}

/// The newest message is copied once, and a newer one is never missed for it.
#[test]
fn the_same_newest_message_is_not_copied_again() {
    for policy in [Policy::Reliable, Policy::Lossy, Policy::Latest] {
        let dir = Dir::new();
        let name = dir.at("topic");
        let mut publisher = Topic::create(&name).capacity(1 << 20).publisher().unwrap();
        let mut subscriber = Topic::open(&name).policy(policy).subscriber().unwrap();
        assert_eq!(subscriber.latest().unwrap_err().kind(), ErrorKind::Empty);
        let mut buffer = Vec::new();
        for seq in 1..=40u64 {
            // A copy that is longer than all before moves.
            let sent = vec![seq as u8; 1 << (seq % 17)];
            publisher.send_tagged(seq as u32, seq, &sent).unwrap();
            if seq % 3 == 0 {
                assert_eq!(subscriber.latest_into(&mut buffer).unwrap().seq, seq);
                assert_eq!(buffer, sent);
            }
            let first = subscriber.latest().unwrap();
            assert_eq!((first.seq(), first.tag(), first.type_id(), &*first), (seq, seq, seq as u32, &*sent));
            let at = first.as_ptr();
            drop(first);
            let again = subscriber.latest().unwrap();
            assert_eq!((again.seq(), again.as_ptr(), &*again), (seq, at, &*sent));
            drop(again);
            match subscriber.try_recv() {
                // What is received comes in order, or is not there: it was seen.
                Ok(message) if policy != Policy::Latest => assert_eq!((message.seq(), &*message), (seq, &*sent)),
                received => assert_eq!(received.map(|message| message.seq()).unwrap_err().kind(), ErrorKind::Empty),
            }
            assert_eq!(subscriber.latest().unwrap().seq(), seq);
        }
    }
}
