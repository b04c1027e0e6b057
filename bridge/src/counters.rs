//! What is counted, per rule. The metrics are made of it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers of one rule, all of its streams together.
#[derive(Debug, Default)]
pub struct Counters {
    /// Messages that crossed: of an export, confirmed, or put by a lossy rule; of an import, in the local segment.
    pub messages: AtomicU64,
    /// Their bytes of payload.
    pub bytes: AtomicU64,
    /// Bytes put on the link, what was sent again included.
    pub sent_bytes: AtomicU64,
    /// Connections that are open, of a bus or RPC.
    pub connections: AtomicU64,
    /// Connections that were made.
    pub connected_ever: AtomicU64,
    /// Connections that were refused: the far listener refused them, is gone, or there were too many.
    pub refused_connections: AtomicU64,
    /// Streams that are open; listeners, not their connections.
    pub streams: AtomicU64,
    /// Streams whose far end answers.
    pub connected: AtomicU64,
    /// Bytes under way that are not confirmed.
    pub in_flight: AtomicU64,
    /// Messages that are sent whole and not confirmed.
    pub unconfirmed: AtomicU64,
    /// Bytes that may be under way, as both ends allow it.
    pub window: AtomicU64,
    /// Bytes of an exported segment that the far side does not have yet, headers included.
    pub backlog: AtomicU64,
    /// Times that a stream went back to what the far end expected, the first time included.
    pub resumes: AtomicU64,
    /// Records that were here already and were dropped.
    pub duplicates_dropped: AtomicU64,
    /// Messages that may be in the local segment twice.
    pub possible_duplicates: AtomicU64,
    /// Messages of a lossy rule that did not arrive, or found no room.
    pub lost: AtomicU64,
    /// Messages that a rule's rate left out.
    pub left_out: AtomicU64,
    /// Times that a broken link made an export let its sender go.
    pub ejected: AtomicU64,
    /// Times that an end of a stream was passed on.
    pub ends: AtomicU64,
    /// Messages of the link that said what cannot be.
    pub refused: AtomicU64,
    /// The last round trip of a question and its answer, in nanoseconds.
    pub round_trip_ns: AtomicU64,
}

/// What one stream adds to counters that go up and down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Of [`Counters::in_flight`].
    pub in_flight: u64,
    /// Of [`Counters::unconfirmed`].
    pub unconfirmed: u64,
    /// Of [`Counters::window`].
    pub window: u64,
    /// Of [`Counters::backlog`].
    pub backlog: u64,
}

impl Gauges {
    /// The stream adds this from here on, in place of what it added before.
    pub fn set(&mut self, counters: &Counters, now: Self) {
        let pairs = [
            (&counters.in_flight, self.in_flight, now.in_flight),
            (&counters.unconfirmed, self.unconfirmed, now.unconfirmed),
            (&counters.window, self.window, now.window),
            (&counters.backlog, self.backlog, now.backlog),
        ];
        for (counter, before, now) in pairs.into_iter().filter(|(_, before, now)| before != now) {
            add(counter, now);
            sub(counter, before);
        }
        *self = now;
    }
}

/// Adds to a counter.
pub fn add(counter: &AtomicU64, n: u64) {
    // Relaxed: numbers for people, which order nothing.
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Takes from a counter that goes up and down.
pub fn sub(counter: &AtomicU64, n: u64) {
    // Relaxed: as in `add`.
    counter.fetch_sub(n, Ordering::Relaxed);
}
