//! The one thing that a bridge changes in a frame: the time that a call has left. The client's machine and the server's have clocks
//! of their own, so each end of a connection takes off what it has measured itself.

use ramway::facts::{CALL_OFF_TIMEOUT_US, RPC_HEADER, TYPE_ID_CALL};
use std::time::Duration;

/// Whether a frame of an RPC's bus is a call, whose payload begins with its time.
#[must_use]
pub fn is_call(type_id: u32, len: u32) -> bool {
    type_id == TYPE_ID_CALL && len as usize >= RPC_HEADER
}

/// The bytes of a call that have to be together for [`shorten`].
pub const TIME_END: u32 = CALL_OFF_TIMEOUT_US as u32 + 4;

/// Takes what was spent off the time that a call has left; `payload` begins with the first [`TIME_END`] bytes of the call. One without a
/// limit (0) stays so, and no other one becomes so: a call whose time is over is left 1 µs, with which no server begins it.
pub fn shorten(payload: &mut [u8], spent: Duration) {
    let Some(field) = payload.get_mut(CALL_OFF_TIMEOUT_US..).and_then(<[u8]>::first_chunk_mut::<4>) else { return };
    let left = u32::from_le_bytes(*field);
    if left != 0 {
        // Rounded down: a server's time for a call is never over before the client's.
        let spent = u32::try_from(spent.as_micros()).unwrap_or(u32::MAX);
        *field = left.saturating_sub(spent).max(1).to_le_bytes();
    }
}

/// How long the fastest way over the link is remembered. The two clocks go apart meanwhile.
const REMEMBERED: Duration = Duration::from_secs(30);
/// More than two clocks go apart in twice that time: so much is not taken for time on the way.
const APART: Duration = Duration::from_millis(10);

/// How much later something arrived than it might have: a link that is held up keeps what is under way, and neither end can see it
/// there. The clocks of both ends have nothing to do with each other; what took the shortest time says how they differ.
#[derive(Debug, Default)]
pub struct Transit {
    /// Arrival less sending of what was fastest, of this period and of the one before.
    fastest: [Option<i64>; 2],
    /// When this period began.
    since: Duration,
}

impl Transit {
    /// By how much something was late, at the least. `sent`: nanoseconds of the other end's clock; `arrived`: of this end's.
    pub fn late(&mut self, sent: u64, arrived: Duration) -> Duration {
        if arrived.saturating_sub(self.since) > REMEMBERED {
            // By one period, however long nothing came: what was known before a silence still counts after it.
            self.fastest = [None, self.fastest[0].or(self.fastest[1])];
            self.since = arrived;
        }
        let took = (arrived.as_nanos() as u64).wrapping_sub(sent) as i64;
        let fastest = self.fastest.iter().flatten().fold(took, |least, other| least.min(*other));
        self.fastest[0] = Some(self.fastest[0].map_or(took, |least| least.min(took)));
        Duration::from_nanos(took.wrapping_sub(fastest).max(0) as u64).saturating_sub(APART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_later_than_the_fastest_is_late() {
        let mut transit = Transit::default();
        // This clock is 40 s ahead of the other one; the way takes 1 ms.
        let mut late = |sent_ms: u64, took_ms: u64| {
            let (sent, arrived) = (sent_ms * 1_000_000, Duration::from_millis(40_000 + sent_ms + took_ms));
            transit.late(sent, arrived).as_millis()
        };
        assert_eq!(late(0, 5), 0);
        assert_eq!(late(10, 1), 0);
        assert_eq!(late(20, 1), 0);
        // Held up for 2 s: those 10 ms are not taken off that two clocks may go apart.
        assert_eq!(late(30, 2001), 1990);
        assert_eq!(late(40, 1), 0);
        // After a long silence it is still known what is fast, for a while.
        assert_eq!(late(100_000, 501), 490);
        assert_eq!(late(140_000, 501), 0);
        // What another end says of its clock is only a number.
        assert_eq!(Transit::default().late(u64::MAX, Duration::ZERO), Duration::ZERO);
        transit.late(0, Duration::ZERO);
        transit.late(u64::MAX / 2, Duration::from_secs(1));
    }

    #[test]
    fn time_is_taken_off_and_never_becomes_no_limit() {
        let left = |timeout: u32, spent: Duration| {
            let mut payload = [0xAA; RPC_HEADER];
            payload[..4].copy_from_slice(&timeout.to_le_bytes());
            shorten(&mut payload, spent);
            assert_eq!(payload[4..], [0xAA; RPC_HEADER - 4]);
            u32::from_le_bytes(*payload.first_chunk().expect("4 bytes"))
        };
        assert_eq!(left(0, Duration::from_secs(5)), 0);
        assert_eq!(left(1000, Duration::ZERO), 1000);
        assert_eq!(left(1000, Duration::from_nanos(1999)), 999);
        assert_eq!(left(1000, Duration::from_millis(1)), 1);
        assert_eq!(left(1, Duration::MAX), 1);
        assert_eq!(left(u32::MAX, Duration::from_secs(10_000)), 1);
        shorten(&mut [1, 2, 3], Duration::MAX);
        assert!(is_call(TYPE_ID_CALL, 16) && !is_call(TYPE_ID_CALL, 15) && !is_call(1, 16));
    }
}
