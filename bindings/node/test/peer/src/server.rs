//! What the other process does as an RPC server.
//!
//! | method | reply |
//! | --- | --- |
//! | 1, `Test.Echo` | the body and the metadata |
//! | 2 | the error 42, with the body as its text |
//! | 3 | the body, once the test says so: `serve release` |
//! | 4 | a stream of so many elements as the body, 4 bytes, says: their numbers, of 4 bytes each |
//! | 5 | so many bytes as the body says: 0, 1, … 255, 0, … |
//! | 6 | the status `HandlerFailed`, with the body as its text |

use std::str::SplitAsciiWhitespace;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::{Refused, WAIT_MAX, number, refused};
use ramway::Sender;
use ramway::ring::raw::WaitLimit;
use ramway::rpc::{Call, Fault, Server, Stopper, Written};

/// A server in a thread of its own.
pub(crate) struct Serving {
    shared: Arc<Shared>,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Of method 3.
    held: Vec<Call>,
    cancelled: u64,
    /// Elements of streams.
    made: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, act: impl FnOnce(&mut State)) {
        act(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until it holds.
    fn until(&self, holds: impl Fn(&State) -> bool) -> Result<MutexGuard<'_, State>, Refused> {
        let waited = self.changed.wait_timeout_while(self.lock(), WAIT_MAX, |state| !holds(state));
        let (state, time) = waited.unwrap_or_else(PoisonError::into_inner);
        if time.timed_out() { Err("this never came".into()) } else { Ok(state) }
    }
}

fn word(body: &[u8]) -> Result<u32, Fault> {
    body.try_into().map(u32::from_le_bytes).map_err(|_| Fault::new(1, "expected 4 bytes"))
}

/// `name` or, with limits, `name,capacity,calls in flight`.
pub(crate) fn serve(place: &str) -> Result<Serving, Refused> {
    let failed = |cause| refused(&cause, 0);
    let mut parts = place.split(',');
    let mut builder = Server::builder(parts.next().unwrap_or_default());
    if let Some(capacity) = parts.next() {
        builder = builder.capacity(number(Some(capacity))?);
    }
    if let Some(calls) = parts.next() {
        builder = builder.max_in_flight(number(Some(calls))?);
    }
    let mut server = builder.bind().map_err(failed)?;
    let shared = Arc::new(Shared::default());
    let echo = |request: &mut ramway::rpc::Request<'_>| -> Result<Written, Fault> {
        let meta = request.meta().to_vec();
        request.set_reply_meta(&meta);
        Ok(request.write(request.body()))
    };
    server.method(1, echo).map_err(failed)?;
    server.method("Test.Echo", echo).map_err(failed)?;
    server
        .method(2, |request| Err::<(), _>(Fault::new(42, String::from_utf8_lossy(request.body()))))
        .map_err(failed)?;
    let held = Arc::clone(&shared);
    server
        .deferred(3, move |call| {
            let told = Arc::clone(&held);
            call.cancellation().on_cancel(move || told.change(|state| state.cancelled += 1));
            held.change(|state| state.held.push(call));
        })
        .map_err(failed)?;
    let made = Arc::clone(&shared);
    server
        .stream(4, move |request| {
            let made = Arc::clone(&made);
            let elements = 0..word(request.body())?;
            Ok(elements.map(move |n| {
                made.change(|state| state.made += 1);
                Ok(n.to_le_bytes())
            }))
        })
        .map_err(failed)?;
    server
        .method(5, |request| {
            let len = word(request.body())? as usize;
            Ok((0..len).map(|i| i as u8).collect::<Vec<u8>>())
        })
        .map_err(failed)?;
    server
        .deferred(6, |call| {
            let text = String::from_utf8_lossy(call.body()).into_owned();
            call.fail_unexpectedly(text);
        })
        .map_err(failed)?;
    let stopper = server.stopper();
    let thread = thread::spawn(move || {
        // It ends by the stopper, or with the process.
        let _ = server.run();
    });
    Ok(Serving { shared, stopper, thread: Some(thread) })
}

/// Sends a frame that a server may or may not send.
pub(crate) fn say(sender: &mut Sender, type_id: u32, id: u64, payload: &[u8]) -> ramway::Result<()> {
    let mut raw = sender.raw();
    let to = raw.reserve(payload.len(), WaitLimit::Forever)?;
    // SAFETY: the slot that was just reserved has room for the payload, and nobody else uses it before the commit.
    unsafe { to.copy_from_nonoverlapping(payload.as_ptr(), payload.len()) };
    raw.commit(payload.len(), type_id, id, true)
}

/// One command, after the word `serve`.
pub(crate) fn command(serving: &mut Serving, words: &mut SplitAsciiWhitespace<'_>) -> Result<String, Refused> {
    let shared = Arc::clone(&serving.shared);
    Ok(match words.next().unwrap_or("") {
        "held" => {
            let count: usize = number(words.next())?;
            format!("held count={}", shared.until(|state| state.held.len() >= count)?.held.len())
        }
        "release" => {
            let calls = std::mem::take(&mut shared.lock().held);
            let count = calls.len();
            for call in calls {
                let body = call.body().to_vec();
                call.reply(body);
            }
            format!("released count={count}")
        }
        "cancelled" => {
            let count: u64 = number(words.next())?;
            format!("cancelled count={}", shared.until(|state| state.cancelled >= count)?.cancelled)
        }
        "made" => {
            let count: u64 = number(words.next())?;
            format!("made count={}", shared.until(|state| state.made >= count)?.made)
        }
        "shutdown" => {
            serving.stopper.shutdown(Duration::from_millis(number(words.next())?));
            if let Some(thread) = serving.thread.take() {
                thread.join().map_err(|_| "the server's thread panicked")?;
            }
            "ended".to_owned()
        }
        "drain" => {
            serving.stopper.shutdown(Duration::from_millis(number(words.next())?));
            "draining".to_owned()
        }
        _ => return Err("an unknown command for a server".into()),
    })
}
