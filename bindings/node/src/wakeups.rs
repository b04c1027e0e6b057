//! How an event loop hears of readiness descriptors: one set of them a JavaScript thread, and one call back into it for
//! all that became readable.
//!
//! Node's loop watches the set itself, by libuv (`uv.rs`). Bun and Deno have no such door: there a thread waits, and calls
//! through a threadsafe function.

use crate::error::os;
use crate::uv::Poll;
use napi::Status;
use napi::bindgen_prelude::*;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use polling::{Event, Events, Poller};
use std::collections::HashSet;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Weak: it does not keep the runtime running.
type Callback = ThreadsafeFunction<Vec<u32>, (), Vec<u32>, Status, false, true>;

/// The descriptors that one JavaScript thread waits for.
#[napi_derive::napi]
pub struct Wakeups {
    /// Held by the watch or thread that waits for it: Deno finalizes nothing when a worker ends.
    set: Weak<Set>,
    /// Tokens whose descriptors are in the set, watched or not.
    known: HashSet<u32>,
    /// Only held: Node's watch over the set.
    _poll: Option<Poll>,
}

pub(crate) struct Set {
    poller: Poller,
    closed: AtomicBool,
}

impl Set {
    /// The tokens of what became readable, which is then watched no more; waits up to `timeout` for the first.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> std::io::Result<Vec<u32>> {
        let mut events = Events::new();
        self.poller.wait(&mut events, timeout)?;
        Ok(events.iter().map(|event| event.key as u32).collect())
    }

    /// Has the thread that waits here end.
    fn close(&self) {
        // Release: pairs with the thread's load after the notification.
        self.closed.store(true, Ordering::Release);
        // If this fails there is a thread that sleeps forever.
        let _ = self.poller.notify();
    }
}

#[napi_derive::napi]
impl Wakeups {
    /// `callback` gets the tokens. `direct`: this is Node, whose loop can watch descriptors.
    #[napi(constructor)]
    pub fn new(env: Env, direct: bool, callback: Function<'_, Vec<u32>, ()>) -> Result<Self> {
        let poller = Poller::new().map_err(|e| os(&e, "a set of descriptors to poll"))?;
        let set = Arc::new(Set { poller, closed: AtomicBool::new(false) });
        let mut poll = None;
        if direct {
            poll = Poll::new(&env, set.poller.as_raw_fd(), Arc::clone(&set), &callback)?;
        }
        if poll.is_none() {
            let call: Callback = callback
                .build_threadsafe_function()
                .callee_handled::<false>()
                .weak::<true>()
                .build_callback(|context| Ok(context.value))?;
            env.add_env_cleanup_hook(Arc::clone(&set), |set| set.close())?;
            let set = Arc::clone(&set);
            let name = "ramway-wakeups".to_owned();
            let spawned = std::thread::Builder::new().name(name).spawn(move || forward(&set, call));
            spawned.map_err(|e| os(&e, "a thread that waits for descriptors"))?;
        }
        Ok(Self { set: Arc::downgrade(&set), known: HashSet::new(), _poll: poll })
    }

    /// Calls back once when the descriptor is readable. One watch a token at a time; the descriptor of a token never
    /// changes, and stays open until `forget`.
    #[napi]
    pub fn watch(&mut self, token: u32, fd: i32) -> Result<()> {
        // Gone only once the environment is.
        let Some(set) = self.set.upgrade() else { return Ok(()) };
        let event = Event::readable(token as usize);
        // SAFETY: the caller keeps the descriptor open.
        let source = unsafe { BorrowedFd::borrow_raw(fd) };
        let outcome = if self.known.insert(token) {
            // SAFETY: as above, until `forget` takes it out.
            unsafe { set.poller.add(fd, event) }
        } else {
            set.poller.modify(source, event)
        };
        outcome.map_err(|e| os(&e, "watching a descriptor"))
    }

    /// Takes a descriptor out of the set, before it is closed. One that was never watched is not an error.
    #[napi]
    pub fn forget(&mut self, token: u32, fd: i32) -> Result<()> {
        if !self.known.remove(&token) {
            return Ok(());
        }
        let Some(set) = self.set.upgrade() else { return Ok(()) };
        // SAFETY: the caller has it open still.
        let source = unsafe { BorrowedFd::borrow_raw(fd) };
        set.poller.delete(source).map_err(|e| os(&e, "forgetting a descriptor"))
    }
}

impl Drop for Wakeups {
    fn drop(&mut self) {
        if let Some(set) = self.set.upgrade() {
            set.close();
        }
    }
}

/// The thread of a runtime that cannot watch descriptors.
fn forward(set: &Set, call: Callback) {
    loop {
        let tokens = set.wait(None).unwrap_or_default();
        // Acquire: pairs with `close`.
        if set.closed.load(Ordering::Acquire) {
            // Its environment ends, or has ended: giving the function back would reach into it.
            std::mem::forget(call);
            return;
        }
        if !tokens.is_empty() && call.call(tokens, ThreadsafeFunctionCallMode::NonBlocking) == Status::Closing {
            return;
        }
    }
}
