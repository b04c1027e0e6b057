//! The ring between two threads: what every call does when all is well. (Processes: `lifecycle.rs`, `traps.rs`.)

use ramway::{ErrorKind, Ring, WaitPolicy};
use std::io::IoSlice;
use std::time::{Duration, Instant};

fn pair() -> (ramway::Sender, ramway::Receiver) {
    Ring::pair(4096).unwrap()
}

#[test]
fn messages_keep_order_type_and_tag() {
    let (mut tx, mut rx) = pair();
    tx.send_tagged(7, 70, b"first").unwrap();
    tx.send(8, b"").unwrap();
    tx.send_vectored(9, 90, &[IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"c")]).unwrap();
    let got: Vec<_> = (0..3)
        .map(|_| {
            let m = rx.recv().unwrap();
            (m.type_id(), m.tag(), m.to_vec())
        })
        .collect();
    assert_eq!(got, [(7, 70, b"first".to_vec()), (8, 0, vec![]), (9, 90, b"abc".to_vec())]);
    assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);
}

#[test]
fn full_too_large_and_timed_out_are_three_errors() {
    let (mut tx, mut rx) = pair();
    let most = tx.max_message_len();
    assert_eq!(most, rustix::param::page_size() - 16, "the smallest ring has a page");
    assert_eq!(tx.try_send(0, &vec![0; most + 1]).unwrap_err().kind(), ErrorKind::TooLarge);
    tx.try_send(0, &vec![1; most]).unwrap();
    assert_eq!(tx.try_send(0, b"").unwrap_err().kind(), ErrorKind::Full);
    let began = Instant::now();
    let late = tx.send_timeout(0, b"", Duration::from_millis(250)).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    assert!(began.elapsed() >= Duration::from_millis(250));
    assert_eq!(rx.recv().unwrap().len(), most);
    assert_eq!(rx.recv_timeout(Duration::from_millis(1)).unwrap_err().kind(), ErrorKind::TimedOut);
    tx.try_send(0, &vec![2; most]).unwrap();
}

#[test]
fn the_longest_message_fits_at_every_position_of_an_empty_ring() {
    let (mut tx, mut rx) = pair();
    let most = tx.max_message_len();
    for step in 0..600 {
        tx.try_send(0, &vec![step as u8; step % 50]).unwrap();
        assert_eq!(rx.try_recv().unwrap().len(), step % 50);
        let big: Vec<u8> = (0..most).map(|i| (i * 7 + step) as u8).collect();
        tx.try_send(1, &big).unwrap();
        assert_eq!(&*rx.try_recv().unwrap(), &big[..]);
    }
}

#[test]
fn a_dropped_slot_leaves_nothing_and_a_short_commit_shortens() {
    let (mut tx, mut rx) = pair();
    let mut slot = tx.reserve(100).unwrap();
    slot.fill(9);
    drop(slot);
    let mut slot = tx.reserve(100).unwrap().with_type_id(5).with_tag(6);
    slot[..3].copy_from_slice(b"yes");
    slot.commit(3).unwrap();
    let slot = tx.reserve(4).unwrap();
    assert_eq!(slot.commit(5).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let m = rx.recv().unwrap();
    assert_eq!((&*m, m.type_id(), m.tag()), (&b"yes"[..], 5, 6));
    m.release();
    assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);
}

/// What language bindings build on: a slot that they left open while they sent in another way.
#[test]
fn a_raw_slot_is_no_room_once_the_ring_is_full() {
    use ramway::ring::raw::WaitLimit;
    let (mut tx, mut rx) = pair();
    tx.raw().reserve(2000, WaitLimit::None).unwrap();
    let mut sent = 0;
    while tx.try_send(0, &[1; 1000]).is_ok() {
        sent += 1;
    }
    assert_eq!(tx.raw().commit(2000, 0, 0, true).unwrap_err().kind(), ErrorKind::InvalidArgument);
    for _ in 0..sent {
        assert_eq!(*rx.try_recv().unwrap(), [1; 1000]);
    }
    assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);
}

#[test]
fn unflushed_messages_appear_at_flush_at_full_and_at_close() {
    let (mut tx, mut rx) = pair();
    tx.reserve(1).unwrap().commit_unflushed(1).unwrap();
    assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);
    tx.flush().unwrap();
    rx.try_recv().unwrap();
    let long = tx.max_message_len() - 80;
    tx.reserve(long).unwrap().commit_unflushed(long).unwrap();
    assert_eq!(tx.try_reserve(long).unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(rx.try_recv().unwrap().len(), long);
    tx.reserve(2).unwrap().commit_unflushed(2).unwrap();
    tx.close().unwrap();
    assert_eq!(rx.recv().unwrap().len(), 2);
    assert_eq!(rx.recv().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_batch_is_released_as_one() {
    let (mut tx, mut rx) = pair();
    assert_eq!(tx.send_batch(3, (0..10u8).map(|i| [i])).unwrap(), 10);
    let before = tx.len();
    let mut batch = rx.recv_batch(4).unwrap();
    let views: Vec<_> = batch.iter().collect();
    assert_eq!(views.iter().map(|v| v[0]).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(tx.len(), before, "nothing is given back while the batch lives");
    drop(views);
    drop(batch);
    assert!(tx.len() < before);
    // What a batch did not read stays.
    drop(rx.recv_batch(3).unwrap());
    assert_eq!(rx.recv().unwrap()[0], 5);
    assert_eq!(rx.recv_batch(100).unwrap().iter().count(), 4);
    assert_eq!(rx.recv_batch(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn the_receiver_closing_is_final_for_the_sender_of_a_pair() {
    let (mut tx, rx) = pair();
    tx.send(0, b"x").unwrap();
    assert!(tx.is_peer_alive());
    drop(rx);
    assert!(!tx.is_peer_alive());
    assert_eq!(tx.send(0, b"y").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(tx.try_reserve(1).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn reserved_type_ids_are_refused() {
    let (mut tx, _rx) = pair();
    for id in [0xFFFF_0000, u32::MAX] {
        assert_eq!(tx.send(id, b"").unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(tx.reserve(0).unwrap().with_type_id(id).commit(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    tx.send(0xFFFE_FFFF, b"").unwrap();
}

#[test]
fn pods_are_read_in_place_or_refused() {
    let (mut tx, mut rx) = pair();
    tx.send_pod(0, &[1u64, 2, 3]).unwrap();
    tx.send(0, b"short").unwrap();
    assert_eq!(rx.recv().unwrap().as_pod::<[u64; 3]>().unwrap(), &[1, 2, 3]);
    assert_eq!(rx.recv().unwrap().as_pod::<u64>().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn last_tag_is_that_of_the_last_visible_message() {
    let (mut tx, _rx) = pair();
    assert_eq!(tx.last_tag(), None);
    for (tag, expected) in [(5, 5), (6, 6), (0, 0), (7, 7)] {
        tx.send_tagged(0, tag, b"").unwrap();
        assert_eq!(tx.last_tag(), Some(expected));
    }
    tx.reserve(0).unwrap().with_tag(8).commit_unflushed(0).unwrap();
    assert_eq!(tx.last_tag(), Some(7));
    tx.flush().unwrap();
    assert_eq!(tx.last_tag(), Some(8));
}

#[test]
fn a_million_messages_pass_between_threads_under_every_policy() {
    for policy in [WaitPolicy::Spin, WaitPolicy::Hybrid, WaitPolicy::Block] {
        let count = if policy == WaitPolicy::Block { 50_000u64 } else { 1_000_000 };
        let (mut tx, mut rx) = pair();
        tx.set_wait_policy(policy);
        rx.set_wait_policy(policy);
        let sender = std::thread::spawn(move || {
            for i in 0..count {
                tx.send_tagged(0, i, &i.to_le_bytes()[..(i % 9) as usize]).unwrap();
            }
        });
        for i in 0..count {
            let m = rx.recv().unwrap();
            assert_eq!((m.tag(), &*m), (i, &i.to_le_bytes()[..(i % 9) as usize]), "{policy:?}");
        }
        assert_eq!(rx.recv().unwrap_err().kind(), ErrorKind::Closed);
        sender.join().unwrap();
    }
}

#[test]
fn blocking_ping_pong_never_waits_for_a_time_out() {
    let (mut ping_tx, mut ping_rx) = pair();
    let (mut pong_tx, mut pong_rx) = pair();
    for policy in [WaitPolicy::Block, WaitPolicy::Hybrid] {
        for end in [&mut ping_rx, &mut pong_rx] {
            end.set_wait_policy(policy);
        }
        let mut longest = Duration::ZERO;
        std::thread::scope(|s| {
            s.spawn(|| {
                for _ in 0..20_000 {
                    ping_rx.recv().unwrap().release();
                    pong_tx.send(0, b"").unwrap();
                }
            });
            for _ in 0..20_000 {
                let began = Instant::now();
                ping_tx.send(0, b"").unwrap();
                pong_rx.recv().unwrap().release();
                longest = longest.max(began.elapsed());
            }
        });
        println!("{policy:?}: longest round trip {longest:?}");
    }
}

/// What a binding does with either side, written once.
#[test]
fn one_native_half_serves_both_sides() {
    use ramway::ring::raw::{RawEndpoint, WaitLimit};

    /// Room, or a frame: at the start, and whether more is there than that.
    fn goes_on(half: &mut impl RawEndpoint, len: usize) -> Result<bool, ErrorKind> {
        let now = half.ready(len).map_err(|e| e.kind());
        let waited = half.wait(len, WaitLimit::None).map(|()| true).or_else(|e| match e.kind() {
            ErrorKind::Full | ErrorKind::Empty => Ok(false),
            kind => Err(kind),
        });
        assert_eq!(now, waited);
        now
    }

    let capacity = rustix::param::page_size();
    let (mut tx, mut rx) = Ring::pair(capacity as u64).unwrap();
    let (before, from) = (tx.start(), rx.start());
    assert_eq!((before.capacity, before.align, before.endings_are_final), (capacity as u64, 16, true));
    assert_eq!((before.block, before.own, before.peer), (from.block, from.peer, from.own));
    assert_eq!((goes_on(&mut tx, 100), goes_on(&mut rx, 0)), (Ok(true), Ok(false)));
    assert_eq!(goes_on(&mut tx, capacity), Err(ErrorKind::TooLarge));

    tx.send(0, &vec![0; capacity - 96]).unwrap();
    assert_eq!((goes_on(&mut tx, 100), goes_on(&mut rx, 0)), (Ok(false), Ok(true)));

    // The receiver reads by itself, and goes on behind the frame.
    let behind = before.own.wrapping_add(capacity as u64 - 80);
    rx.follow(behind, behind);
    assert!(rx.is_empty());
    assert_eq!((rx.await_peer(WaitLimit::None).unwrap(), rx.wake()), (1, tx.wake()));

    rx.say_closed();
    assert_eq!(tx.wait_for_peer().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(tx.corrupt().kind(), ErrorKind::Corrupt);
    assert_eq!(tx.check().unwrap_err().kind(), ErrorKind::Corrupt);
}
