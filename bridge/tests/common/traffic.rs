//! Numbered messages through a ring: sent as fast as there is room, and checked to be all there, in order, whole.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ramway::{ErrorKind, Receiver, Sender};

use super::{LONG, Machine, checked, message, until};

/// The type id of the last message.
const LAST: u32 = 9;
/// The longest message: some are longer than a piece of the stream.
pub const LONGEST: usize = 100 << 10;

/// A sender on one machine and a receiver on another, each in a thread.
pub struct Traffic {
    over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
    sends: JoinHandle<u64>,
    receives: JoinHandle<Received>,
    name: PathBuf,
}

/// What arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub messages: u64,
    pub doubled: u64,
}

impl Traffic {
    /// Of a ring `name` on `near`, which appears on `far`.
    pub fn start(near: &Machine, far: &Machine, name: &str) -> Self {
        let (over, sent, received) =
            (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let sender = near.sender(name, 1 << 20);
        let path = far.at(name);
        let sends = {
            let (over, sent) = (Arc::clone(&over), Arc::clone(&sent));
            std::thread::spawn(move || send(sender, &over, &sent))
        };
        let receives = {
            let (received, far, name) = (Arc::clone(&received), far.directory.clone(), name.to_owned());
            std::thread::spawn(move || {
                // Borrowed for the directory: it goes with the test's own.
                let far = std::mem::ManuallyDrop::new(Machine { directory: far });
                receive(far.receiver(&name), &received)
            })
        };
        Self { over, sent, received, sends, receives, name: path }
    }

    /// Waits until so many more have arrived.
    pub fn wait_for_more(&self, messages: u64) {
        // Relaxed here and below: counts for people and for waits, which order nothing.
        let now = self.received.load(Ordering::Relaxed);
        until(&format!("{messages} more messages than {now} arrive at {}", self.name.display()), || {
            assert!(!self.receives.is_finished() && !self.sends.is_finished(), "a side of the traffic has failed");
            self.received.load(Ordering::Relaxed) >= now + messages
        });
    }

    /// Waits until the sender has had no room for this long.
    pub fn wait_for_standstill(&self, time: Duration) {
        let mut seen = (self.sent.load(Ordering::Relaxed), Instant::now());
        until("the sender waits", || {
            let sent = self.sent.load(Ordering::Relaxed);
            if sent != seen.0 {
                seen = (sent, Instant::now());
            }
            seen.1.elapsed() >= time
        });
    }

    /// Sends a last one, waits until all have arrived, and says how many.
    pub fn finish(self) -> Received {
        self.over.store(true, Ordering::Relaxed);
        let sent = self.sends.join().expect("the sender");
        let received = self.receives.join().expect("the receiver");
        assert_eq!(received.messages, sent, "everything arrives");
        received
    }
}

/// A bridge that goes is a receiver that dies: the next one goes on.
fn send(mut sender: Sender, over: &AtomicBool, sent: &AtomicU64) -> u64 {
    let mut number = 0;
    loop {
        let last = over.load(Ordering::Relaxed);
        let (type_id, bytes) = (if last { LAST } else { 1 }, message(number, LONGEST));
        loop {
            match sender.send_timeout(type_id, &bytes, LONG) {
                Ok(()) => break,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::PeerDead, "message {number}: {error}");
                    sender.wait_for_peer_timeout(LONG).expect("a bridge comes again");
                }
            }
        }
        number += 1;
        sent.store(number, Ordering::Relaxed);
        if last {
            // It stays until everything is taken, so that the ring does not go with its last user.
            until("the last message is taken", || sender.is_empty());
            return number;
        }
    }
}

fn receive(mut receiver: Receiver, count: &AtomicU64) -> Received {
    let mut received = Received { messages: 0, doubled: 0 };
    loop {
        let taken = receiver.recv_timeout(LONG).map(|message| (checked(&message, LONGEST), message.type_id() == LAST));
        let last = match taken {
            Ok((number, last)) => {
                assert!(number <= received.messages, "{} is missing: {number} came", received.messages);
                if number == received.messages {
                    received.messages += 1
                } else {
                    received.doubled += 1
                }
                count.store(received.messages, Ordering::Relaxed);
                last
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::PeerDead, "after {} messages: {error}", received.messages);
                receiver.wait_for_peer_timeout(LONG).expect("a bridge comes again");
                false
            }
        };
        if last {
            return received;
        }
    }
}
