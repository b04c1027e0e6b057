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

#[cfg(test)]
mod tests {
    use super::*;

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
