//! What may move to another thread or be looked at from one: checked by the compiler.

use ramway::{Batch, BatchIter, Bus, Connector, Error, Inbox, Iter, Listener, ListenerBuilder, Message, MessageView};
use ramway::{Outbox, OwnedMessage, Publisher, Readiness, Receiver, Region, RegionBuilder, Ring, RingBuilder};
use ramway::{Select, Sender, Slot, Subscriber, Topic, TopicBuilder};

fn send<T: Send>() {}
fn sync<T: Sync>() {}

#[test]
fn every_handle_and_view_moves_between_threads() {
    send::<Sender>();
    send::<Receiver>();
    send::<Slot<'_>>();
    send::<Message<'_>>();
    send::<Batch<'_>>();
    send::<BatchIter<'_>>();
    send::<MessageView<'_>>();
    send::<Iter<'_>>();
    send::<OwnedMessage>();
    send::<Bus>();
    send::<Listener>();
    send::<Region>();
    send::<Readiness>();
    send::<Publisher>();
    send::<Subscriber>();
    send::<Message<'_, Topic>>();
    send::<TopicBuilder>();
    send::<Select>();
    send::<Inbox>();
    send::<Outbox>();
    send::<Error>();
    send::<RingBuilder>();
    send::<RegionBuilder>();
    send::<ListenerBuilder>();
    send::<Connector>();
    sync::<Message<'_>>();
    sync::<MessageView<'_>>();
    sync::<Listener>();
    sync::<Region>();
    sync::<Error>();
}

/// The messages of one batch, looked at by several threads at once.
#[test]
fn a_batch_is_shared_out() -> ramway::Result<()> {
    let (mut tx, mut rx) = Ring::pair(4096)?;
    tx.send_batch(0, (1..=8u8).map(|n| [n; 100]))?;
    let mut batch = rx.recv_batch(8)?;
    let sum: u32 = std::thread::scope(|scope| {
        let sums: Vec<_> = batch
            .iter()
            .map(|view| scope.spawn(move || view.iter().map(|&byte| u32::from(byte)).sum::<u32>()))
            .collect();
        sums.into_iter().map(|sum| sum.join().unwrap()).sum()
    });
    assert_eq!(sum, 3_600);
    drop(batch);
    assert!(rx.is_empty());
    Ok(())
}
