//! What an inbox and an outbox have in common: the other side of each bus, and the options that are about it.

use crate::options::wait_policy;
use crate::status::{Outcome, null};
use ramway_core::Peer;

/// A process that is connected to an inbox or to an outbox.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ramway_peer {
    /// Counts up from 1 with each that connects.
    pub id: u64,
    /// Its effective user.
    pub uid: u32,
    /// Its process when it connected, 0 if it has no number here. It says who asked; numbers are used again.
    pub pid: u32,
}

impl From<Peer> for ramway_peer {
    fn from(Peer { id, uid, pid }: Peer) -> Self {
        Self { id, uid, pid: pid.unwrap_or(0) }
    }
}

/// Checks what both kinds of options have, before a builder is told.
pub(crate) fn checked(policy: u32, allow_uids: *const u32, allow_uid_count: u32, of: &str) -> Outcome {
    if allow_uid_count != 0 && allow_uids.is_null() {
        return Err(null(&format!("{of}.allow_uids")));
    }
    wait_policy(policy).map(drop)
}

/// Tells a builder of an inbox or an outbox what both can be told. Zero is "the default". The caller has looked for null.
macro_rules! with_peer_options {
    ($builder:expr, $options:expr) => {{
        let options = $options;
        let mut builder = $builder.wait_policy($crate::options::wait_policy(options.wait_policy)?);
        if options.capacity != 0 {
            builder = builder.capacity(options.capacity);
        }
        if options.align != 0 {
            builder = builder.align(options.align);
        }
        if options.max_peers != 0 {
            builder = builder.max_peers(options.max_peers as usize);
        }
        if options.mode != 0 {
            builder = builder.mode(options.mode);
        }
        if options.allow_uid_count != 0 {
            // SAFETY: the caller's: so many numbers, not null.
            let uids = unsafe { std::slice::from_raw_parts(options.allow_uids, options.allow_uid_count as usize) };
            builder = builder.allow_uids(uids);
        }
        if options.timeout_ns != 0 {
            builder = builder.handshake_timeout($crate::options::duration(options.timeout_ns)?);
        }
        builder
    }};
}
pub(crate) use with_peer_options;
