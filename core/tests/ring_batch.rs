//! `Sender::batch`: messages written in place and published together.

use ramway::{ErrorKind, Ring};

fn pair() -> (ramway::Sender, ramway::Receiver) {
    Ring::pair(4096).unwrap()
}

#[test]
fn a_batch_is_written_in_place_and_published_as_one() {
    let (mut tx, mut rx) = pair();
    tx.reserve(1).unwrap().with_tag(1).commit_unflushed(1).unwrap();
    let mut batch = tx.batch();
    batch.write(2, 20, 3, |bytes| bytes.copy_from_slice(b"two")).unwrap();
    batch.write(3, 0, 0, |bytes| assert!(bytes.is_empty())).unwrap();
    assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);
    batch.flush();
    let mut got = Vec::new();
    for m in rx.try_recv_batch(9).unwrap().iter() {
        got.push((m.type_id(), m.tag(), m.len()));
    }
    assert_eq!(got, [(0, 1, 1), (2, 20, 3), (3, 0, 0)]);
    batch.write(4, 40, 8, |bytes| bytes.fill(4)).unwrap();
    drop(batch);
    assert_eq!(tx.last_tag(), Some(40));
    assert_eq!(*rx.try_recv().unwrap(), [4; 8]);

    // An error leaves what was before it in the batch, and a batch that is forgotten sends nothing.
    let too_long = tx.max_message_len() + 1;
    let mut batch = tx.batch();
    batch.write(5, 50, 1, |bytes| bytes.fill(5)).unwrap();
    for len in [too_long, u32::MAX as usize, usize::MAX] {
        assert_eq!(batch.write(0, 0, len, |_| unreachable!()).unwrap_err().kind(), ErrorKind::TooLarge);
    }
    assert_eq!(batch.write(u32::MAX, 0, 1, |_| unreachable!()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    drop(batch);
    assert_eq!(tx.last_tag(), Some(50));
    let mut batch = tx.batch();
    batch.write(6, 60, 1, |bytes| bytes.fill(6)).unwrap();
    std::mem::forget(batch);
    assert_eq!(*rx.try_recv().unwrap(), [5]);
    tx.send(7, b"seven").unwrap();
    assert_eq!(rx.recv().unwrap().type_id(), 7);

    // A panic in the middle of a message: the messages before it are sent, it is not.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut batch = tx.batch();
        batch.write(8, 0, 1, |bytes| bytes.fill(8)).unwrap();
        batch.write(9, 0, 1, |_| panic!("in the middle")).unwrap();
    }));
    assert!(panicked.is_err());
    assert_eq!(rx.try_recv().unwrap().type_id(), 8);
    assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);
}

#[test]
fn a_batch_that_is_larger_than_the_ring_waits_for_room() {
    const COUNT: u64 = 100_000;
    let (mut tx, mut rx) = pair();
    std::thread::scope(|s| {
        s.spawn(|| {
            let mut batch = tx.batch();
            for i in 0..COUNT {
                batch.write(0, i, (i % 100) as usize, |bytes| bytes.fill(i as u8)).unwrap();
            }
            drop(batch);
            drop(tx);
        });
        for i in 0..COUNT {
            let message = rx.recv().unwrap();
            assert_eq!((message.tag(), message.len()), (i, (i % 100) as usize));
            assert!(message.iter().all(|&byte| byte == i as u8));
        }
        assert_eq!(rx.recv().unwrap_err().kind(), ErrorKind::Closed);
    });
    let (mut tx, rx) = pair();
    let mut batch = tx.batch();
    batch.write(0, 0, 1, |_| ()).unwrap();
    drop(rx);
    assert_eq!(batch.write(0, 0, 1, |_| unreachable!()).unwrap_err().kind(), ErrorKind::Closed);
}
