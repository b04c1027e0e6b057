//! How `ramway_rpc_poll` runs the callbacks of calls.

use super::client::{ClientWaker, Inside};
use super::reply::ramway_rpc_reply;
use crate::exclusive::Entered;
use ramway_core::facts::RPC_FRAMES_PER_ROUND;
use ramway_core::rpc::{InPlace, Taken};
use std::ffi::c_void;

pub(super) type Done = unsafe extern "C" fn(call: u64, reply: *mut ramway_rpc_reply, user: *mut c_void);

/// Who is told of a call.
pub(super) struct Callback {
    pub(super) done: Done,
    pub(super) user: *mut c_void,
    /// In `ready`.
    pub(super) is_ready: bool,
}

/// What running callbacks came to.
pub(super) enum Ran {
    /// At least one was run.
    Some,
    /// None was, and there may be more to receive.
    NoneYet,
    Nothing,
}

/// Runs the callbacks of what is there now: of successful replies where they lie in the ring, unless others come before them that
/// were received already.
pub(super) fn run_callbacks(entered: &mut Entered<'_, Inside, ClientWaker>) -> Ran {
    let mut more = true;
    let mut ran = false;
    let mut in_order = entered.ready.is_empty();
    for _ in 0..RPC_FRAMES_PER_ROUND {
        let Inside { raw, callbacks, .. } = &mut **entered;
        let reply;
        (more, reply) = raw.next_in_place(|call| in_order && callbacks.contains_key(&call));
        match reply {
            Some(reply) => {
                run_in_place(entered, &reply);
                ran = true;
            }
            None if more => in_order = false,
            None => break,
        }
    }
    let inside = &mut **entered;
    inside.raw.release_reply();
    inside.raw.act();
    if inside.is_detached() {
        return Ran::Nothing;
    }
    inside.note_changed();
    ran |= run_ready(entered);
    match (ran, more) {
        (true, _) => Ran::Some,
        (false, true) => Ran::NoneYet,
        (false, false) => Ran::Nothing,
    }
}

/// Runs the callback of a call whose reply is in the ring.
fn run_in_place(entered: &mut Entered<'_, Inside, ClientWaker>, in_place: &InPlace) {
    let number = in_place.call;
    let Some(&Callback { done, user, .. }) = entered.callbacks.get(&number) else { return };
    if !in_place.more {
        entered.callbacks.remove(&number);
    }
    let mut reply = ramway_rpc_reply::of_place(in_place);
    // SAFETY: the caller's function, which does not unwind; the bytes lie in the ring until the next reply is received.
    entered.outside(|| unsafe { done(number, &raw mut reply, user) });
    reply.free();
}

/// Runs what is ready now; what becomes ready meanwhile is for the next round. False: there was nothing, only calls that were
/// cancelled.
fn run_ready(entered: &mut Entered<'_, Inside, ClientWaker>) -> bool {
    let mut ran = false;
    for _ in 0..entered.ready.len() {
        let inside = &mut **entered;
        let Some(number) = inside.ready.pop_front() else { break };
        if let Some(callback) = inside.callbacks.get_mut(&number) {
            callback.is_ready = false;
        }
        loop {
            // It may be cancelled by its own callback.
            let inside = &mut **entered;
            let Some(&Callback { done, user, .. }) = inside.callbacks.get(&number) else { break };
            let (mut reply, is_end) = match inside.raw.take(number) {
                Taken::NotYet => break,
                Taken::Element(element) => (ramway_rpc_reply::of_reply(element, true), false),
                Taken::End(outcome) => {
                    inside.callbacks.remove(&number);
                    (ramway_rpc_reply::of_outcome(outcome).0, true)
                }
            };
            // SAFETY: the caller's function, which does not unwind; the reply lives until it returns.
            entered.outside(|| unsafe { done(number, &raw mut reply, user) });
            reply.free();
            ran = true;
            if is_end {
                break;
            }
        }
    }
    ran
}
