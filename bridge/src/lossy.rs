//! Topics that cross without anybody waiting for it: lossy ones, and the newest value. Each message is put by itself, so that any
//! Zenoh client can read and write them; the attachment says what a Ramway topic says besides.
//!
//! What is lost is counted where it is noticed: before the link by the near subscriber, on it by the far end, by the numbers.

use crate::counters::{self, Counters};
use crate::link::{How, Link, LinkError, Payload};
use crate::log;
use crate::place::{self, Ledger};
use crate::topic;
use crate::wire::{self, Stamp};
use ramway::{ErrorKind, Publisher, Subscriber, Topic, WaitPolicy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The longest that a wait takes before the thread checks whether it is to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Messages that may wait for the thread that writes them.
pub const QUEUE: usize = 1024;

/// A topic that is put on the link.
pub struct LossyExport {
    /// The link.
    pub link: Link,
    /// The key.
    pub key: String,
    /// The topic's name.
    pub name: String,
    /// This machine.
    pub machine: u64,
    /// The number of the segment.
    pub stream: u64,
    /// Only the newest message is of interest.
    pub newest: bool,
    /// At most one message in this time.
    pub every: Option<Duration>,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// The bridge is to end.
    pub stop: Arc<AtomicBool>,
}

impl LossyExport {
    /// Takes a place among the topic's subscribers, which the publisher never waits for.
    ///
    /// # Errors
    /// As for [`TopicBuilder::subscriber`](ramway::TopicBuilder::subscriber).
    pub fn open(name: &str, newest: bool) -> ramway::Result<Subscriber> {
        let topic = Topic::open(name).wait_policy(WaitPolicy::Block);
        if newest { topic.latest().subscriber() } else { topic.lossy().subscriber() }
    }

    /// Carries the topic until its publisher has ended or the bridge ends.
    ///
    /// # Errors
    /// If the link is closed, or the topic cannot be read.
    pub fn run(&self, mut subscriber: Subscriber) -> Result<(), String> {
        counters::add(&self.counters.streams, 1);
        let done = self.carry(&mut subscriber);
        counters::sub(&self.counters.streams, 1);
        done
    }

    fn carry(&self, subscriber: &mut Subscriber) -> Result<(), String> {
        let text = |e: LinkError| e.to_string();
        let outlet = self.link.outlet(self.key.clone(), How::Dropping).map_err(text)?;
        let mut due: Option<Instant> = None;
        while !self.stop.load(Ordering::Relaxed) {
            if self.newest
                && let Some(wait) = due.map(|due| due.saturating_duration_since(Instant::now()))
                && !wait.is_zero()
            {
                // What is published meanwhile is not the newest when this goes on.
                std::thread::sleep(wait.min(CHECK_INTERVAL));
                continue;
            }
            let mut bytes = Vec::new();
            let message = match subscriber.recv_into_timeout(&mut bytes, CHECK_INTERVAL) {
                Ok(message) => message,
                Err(e) => match e.kind() {
                    ErrorKind::TimedOut | ErrorKind::Interrupted => continue,
                    ErrorKind::Lagged => {
                        counters::add(&self.counters.lost, e.lost().unwrap_or(0));
                        continue;
                    }
                    // Another publisher may come: then it is found again.
                    ErrorKind::Closed => return Ok(()),
                    ErrorKind::PeerDead if self.wait_for_publisher(subscriber) => continue,
                    ErrorKind::PeerDead => return Ok(()),
                    _ => return Err(e.to_string()),
                },
            };
            let lost = if self.newest { &self.counters.left_out } else { &self.counters.lost };
            counters::add(lost, message.lost);
            let now = Instant::now();
            if let (Some(every), Some(at)) = (self.every, due)
                && at > now
            {
                debug_assert!(!self.newest && !every.is_zero());
                counters::add(&self.counters.left_out, 1);
                continue;
            }
            due = self.every.map(|every| now + every);
            let stamp = Stamp {
                near: self.machine,
                stream: self.stream,
                seq: message.seq,
                time: message.time,
                tag: message.tag,
                type_id: message.type_id,
            };
            counters::add(&self.counters.messages, 1);
            counters::add(&self.counters.bytes, bytes.len() as u64);
            counters::add(&self.counters.sent_bytes, (bytes.len() + wire::STAMP_LEN) as u64);
            outlet.put_with(bytes, wire::encode_stamp(&stamp)).map_err(text)?;
        }
        Ok(())
    }

    fn wait_for_publisher(&self, subscriber: &mut Subscriber) -> bool {
        while !self.stop.load(Ordering::Relaxed) {
            match subscriber.wait_for_peer_timeout(CHECK_INTERVAL) {
                Ok(_) => return true,
                Err(e) if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
                Err(_) => return false,
            }
        }
        false
    }
}

/// A topic that is written from the link.
pub struct LossyImport {
    /// The topic's name.
    pub name: String,
    /// Of the topic, if it is made and not to have the usual one.
    pub capacity: Option<u64>,
    /// Every message that is missing was left out on purpose, or nobody misses it.
    pub newest: bool,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// The bridge is to end.
    pub stop: Arc<AtomicBool>,
}

/// A message for [`LossyImport::run`], with its attachment.
pub type Message = (Payload, Option<Vec<u8>>);

/// Where a stream's numbers are here.
struct Numbers {
    stream: u64,
    near: u64,
    /// The number here less the one there, wrapping.
    delta: u64,
    /// The number there that comes next.
    next: u64,
}

impl LossyImport {
    /// Publishes what comes until the bridge ends.
    pub fn run(&self, came: &mpsc::Receiver<Message>) {
        counters::add(&self.counters.streams, 1);
        let mut publisher = None;
        let mut numbers: Option<Numbers> = None;
        let mut complaint = log::Once::default();
        while !self.stop.load(Ordering::Relaxed) {
            let (payload, attachment) = match came.recv_timeout(CHECK_INTERVAL) {
                Ok(message) => message,
                Err(mpsc::RecvTimeoutError::Timeout) => continue,
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            };
            if publisher.is_none() {
                match topic::publisher(&self.name, self.capacity).and_then(|made| self.note(made)) {
                    Ok(made) => publisher = Some(made),
                    Err(e) => {
                        complaint.say(&format!("import of the topic '{}': {e}", self.name));
                        counters::add(&self.counters.lost, 1);
                        continue;
                    }
                }
            }
            let Some(publisher) = &mut publisher else { continue };
            if let Err(e) = self.publish(publisher, &mut numbers, &payload, attachment.as_deref()) {
                counters::add(&self.counters.lost, 1);
                if e.kind() != ErrorKind::Full {
                    complaint.say(&format!("import of the topic '{}': {e}", self.name));
                }
            }
        }
        if let Some(publisher) = publisher {
            publisher.abandon();
        }
        counters::sub(&self.counters.streams, 1);
    }

    /// Writes down that this topic was made of another one, so that it is not exported again.
    fn note(&self, publisher: Publisher) -> ramway::Result<Publisher> {
        let segment = place::identity(&ramway::survey::inspect(&self.name)?);
        let epoch = publisher.epoch();
        for kind in ["topic", "newest"] {
            // What an earlier bridge wrote says where the numbers are, if nobody else has published since.
            let before = Ledger::read(kind, &self.name)
                .filter(|ledger| ledger.segment == segment && ledger.epoch.wrapping_add(1) == epoch);
            let (stream, delta) = before.map_or((0, 0), |ledger| (ledger.stream, ledger.delta));
            self.write(kind, &Ledger { stream, segment, delta, epoch });
        }
        Ok(publisher)
    }

    fn write(&self, kind: &str, ledger: &Ledger) {
        if let Err(e) = ledger.write(kind, &self.name) {
            let what = "what keeps it from being exported again, and counts what is lost while no bridge runs";
            log::say(&format!("import of the topic '{}': {what}, cannot be written: {e}", self.name));
        }
    }

    /// Where the numbers of a stream are here, of which this is the first message that this process sees.
    fn numbers(&self, publisher: &Publisher, stamp: &Stamp) -> ramway::Result<Numbers> {
        let kind = if self.newest { "newest" } else { "topic" };
        let (at, epoch) = (publisher.publisher_at().seq, publisher.epoch());
        let segment = place::identity(&ramway::survey::inspect(&self.name)?);
        let known = Ledger::read(kind, &self.name)
            .filter(|ledger| (ledger.stream, ledger.segment, ledger.epoch) == (stamp.stream, segment, epoch));
        let (delta, next) = match known {
            // What is missing was lost while no bridge ran.
            Some(ledger) => (ledger.delta, at.wrapping_sub(ledger.delta)),
            // The same numbers where they can be.
            None => (at.max(stamp.seq).wrapping_sub(stamp.seq), stamp.seq),
        };
        self.write(kind, &Ledger { stream: stamp.stream, segment, delta, epoch });
        Ok(Numbers { stream: stamp.stream, near: stamp.near, delta, next })
    }

    fn publish(
        &self,
        publisher: &mut Publisher,
        numbers: &mut Option<Numbers>,
        payload: &Payload,
        attachment: Option<&[u8]>,
    ) -> ramway::Result<()> {
        // Of a client that knows nothing of Ramway: the topic gives the number.
        let stamp = attachment.and_then(wire::decode_stamp);
        if let Some(stamp) = stamp {
            let at = publisher.publisher_at().seq;
            let known = numbers.as_ref().is_some_and(|known| known.stream == stamp.stream && known.near == stamp.near);
            if !known {
                *numbers = Some(self.numbers(publisher, &stamp)?);
            }
            let known = numbers.as_mut().expect("set above");
            if stamp.seq < known.next {
                // It was overtaken by a later one, or came by two ways.
                counters::add(&self.counters.duplicates_dropped, 1);
                return Ok(());
            }
            let missing = if self.newest { &self.counters.left_out } else { &self.counters.lost };
            counters::add(missing, stamp.seq - known.next);
            known.next = stamp.seq + 1;
            let here = stamp.seq.wrapping_add(known.delta);
            // A message that found no room before leaves a gap as well.
            if here > at {
                publisher.skip_seq(here - at)?;
            }
        }
        let bytes = payload.bytes();
        let (type_id, tag, time) = stamp.map_or((0, 0, 0), |stamp| (stamp.type_id, stamp.tag, stamp.time));
        let mut raw = publisher.raw();
        let to = raw.reserve(bytes.len(), ramway::ring::raw::WaitLimit::None)?;
        // SAFETY: there is room for this many bytes, which are the publisher's until the commit; the others lie elsewhere.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        raw.commit_at(bytes.len(), type_id, tag, time)?;
        publisher.flush()?;
        counters::add(&self.counters.messages, 1);
        counters::add(&self.counters.bytes, bytes.len() as u64);
        Ok(())
    }
}
