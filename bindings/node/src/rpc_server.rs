//! What `lib/rpc/server.ts` stands on: the core's server, whose calls are all deferred. They and their answers go to and from
//! JavaScript many at a time, as numbers and bytes in arrays that are JavaScript's: one crossing a wake-up, whatever has come.

use crate::error::{OrThrow, refuse};
use crate::handle::Shared;
use crate::opening::{Attempt, GoOn, promise};
use crate::options::{ServeSettings, milliseconds};
use crate::teardown::close_with;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use ramway::ErrorKind;
use ramway::rpc::{Call, Fault, MethodKey, Server, Stopper};
use std::collections::{HashMap, VecDeque};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Numbers that say how the server is, before those of what has come.
const HEAD: usize = 4;
/// Numbers of what has come: a call, or what has changed of one.
const RECORD: usize = 8;
/// Numbers of an answer.
const ANSWER: usize = 5;

/// What an answer is. `lib/rpc/crossing.ts` has the same numbers.
const REPLY: u32 = 0;
const FAULT: u32 = 1;
const FAILED: u32 = 2;
const FINISH: u32 = 3;
const ELEMENT: u32 = 4;

/// Calls that JavaScript has not heard of.
#[derive(Default)]
struct Arrivals {
    calls: VecDeque<(u64, Call)>,
    /// The number of the last one.
    last: u64,
}

/// The numbers of calls that have changed: cancelled, or an element can be sent. Only numbers: each call's callback has it.
type Changed = Arc<Mutex<Vec<u64>>>;

// Used by the JavaScript thread alone; the locks are there for the types.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A method's number, and its name if it has one.
struct Key {
    number: u32,
    name: Option<String>,
}

impl MethodKey for Key {
    fn number_and_name(&self) -> (u32, Option<&str>) {
        (self.number, self.name.as_deref())
    }
}

/// The server, and its calls that have no answer yet.
struct Serving {
    server: Server,
    arrivals: Arc<Mutex<Arrivals>>,
    changed: Changed,
    /// Those that JavaScript has heard of.
    calls: HashMap<u64, Call>,
}

/// Serves calls. `lib/rpc/serving.ts` waits for its descriptor.
#[napi]
pub struct NativeRpcServer {
    serving: Arc<Shared<Serving>>,
    stopper: Stopper,
    path: String,
}

/// Starts to listen at `name`. Nothing is served before the first `cross`.
#[napi(ts_return_type = "Promise<NativeRpcServer>")]
pub fn bind_rpc<'env>(
    env: &'env Env,
    attempt: &Attempt,
    name: String,
    settings: ServeSettings,
) -> Result<Object<'env>> {
    let builder = settings.builder(&name)?;
    promise(env, attempt, move |_: GoOn<'_>| builder.bind(), NativeRpcServer::wrap)
}

#[napi]
pub fn bind_rpc_sync(env: Env, name: String, settings: ServeSettings) -> Result<NativeRpcServer> {
    let server = settings.builder(&name)?.bind().or_throw()?;
    NativeRpcServer::wrap(&env, server)
}

impl NativeRpcServer {
    fn wrap(env: &Env, server: Server) -> Result<Self> {
        let (stopper, path) = (server.stopper(), server.path().to_string_lossy().into_owned());
        let serving = Serving { server, arrivals: Arc::default(), changed: Arc::default(), calls: HashMap::new() };
        let serving = Shared::new(serving, "RPC server");
        close_with(env, &serving)?;
        Ok(Self { serving, stopper, path })
    }
}

#[napi]
impl NativeRpcServer {
    #[napi(getter)]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Readable when `cross` would find something.
    #[napi(getter)]
    pub fn fd(&self) -> Result<i32> {
        self.serving.with(|serving| Ok(serving.server.descriptor().or_throw()?.as_raw_fd()))
    }

    /// Whether the descriptor is readable now.
    #[napi]
    pub fn ready(&self) -> Result<bool> {
        let mut poll = libc::pollfd { fd: self.fd()?, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, whose descriptor the server has open. An error reads as "not now".
        Ok(unsafe { libc::poll(&mut poll, 1, 0) } > 0)
    }

    /// How many clients are connected.
    #[napi(getter)]
    pub fn clients(&self) -> Result<u32> {
        self.serving.with(|serving| Ok(serving.server.clients() as u32))
    }

    /// Registers a method. `stream`: its reply is one.
    #[napi]
    pub fn add(&self, number: u32, name: Option<String>, stream: bool) -> Result<()> {
        self.serving.with(|serving| {
            let (arrivals, changed) = (Arc::clone(&serving.arrivals), Arc::clone(&serving.changed));
            let arrive = move |call: Call| {
                if stream && !call.is_stream() {
                    let text = format!("method {} replies with a stream: call it as one", call.method());
                    return call.fail_unexpectedly(text);
                }
                let mut arrivals = lock(&arrivals);
                arrivals.last += 1;
                let token = arrivals.last;
                let changed = Arc::clone(&changed);
                call.on_change(move || lock(&changed).push(token));
                arrivals.calls.push_back((token, call));
            };
            serving.server.deferred(Key { number, name }, arrive).or_throw()
        })
    }

    /// Takes `count` answers, serves, and gives how many records of what has come are in `into`; none if not `takes`.
    ///
    /// An answer is five numbers: the call's, what it is, the application's code, and the lengths of metadata and body, which
    /// are in `out_bytes` one after the other. `into` begins with four numbers: 1 if the server was shut down, in how many
    /// milliseconds this is to be called although the descriptor is not readable (Infinity: never), and two that are not used. A
    /// record is eight: the call's number, and of a call its method, 1 for one reply or 2 for a stream, its milliseconds
    /// (Infinity: no limit), the client's user and process (-1: no number), and the lengths of metadata and body, which are in
    /// `into_bytes` one after the other. Both below 0, and less by one: there was no room, and `bytes` has them. Of one that has changed: -1 for the
    /// method, 1 if another element can be sent, 1 if nobody wants its reply any more.
    #[napi]
    pub fn cross(
        &self,
        out: Float64ArraySlice<'_>,
        out_bytes: Uint8ArraySlice<'_>,
        count: u32,
        mut into: Float64ArraySlice<'_>,
        mut into_bytes: Uint8ArraySlice<'_>,
        takes: bool,
    ) -> Result<u32> {
        self.serving.with(|serving| {
            let mut bytes: &[u8] = &out_bytes;
            for answer in out.chunks_exact(ANSWER).take(count as usize) {
                let &[token, what, code, meta_len, body_len] = answer else { break };
                let (Some(meta), Some(body)) = (cut(&mut bytes, meta_len as usize), cut(&mut bytes, body_len as usize))
                else {
                    return Err(refuse(ErrorKind::InvalidArgument, "an answer's bytes are not there"));
                };
                serving.answer(token as u64, what as u32, code as u32, meta, body)?;
            }
            let is_over = match serving.server.poll() {
                Ok(()) => false,
                Err(e) if e.kind() == ErrorKind::Closed => true,
                Err(e) => return Err(e).or_throw(),
            };
            // SAFETY: this thread is JavaScript's, whose arrays both are until this returns, and `out` and `out_bytes` are others.
            let (into, into_bytes) = unsafe { (into.as_mut(), into_bytes.as_mut()) };
            let Some((head, records)) = into.split_at_mut_checked(HEAD) else {
                return Err(refuse(ErrorKind::InvalidArgument, "there is no room for how the server is"));
            };
            head[0] = f64::from(u8::from(is_over));
            head[1] = serving.server.due_in().map_or(f64::INFINITY, |due| due.as_secs_f64() * 1e3);
            Ok(if takes { serving.give(records, into_bytes) } else { 0 })
        })
    }

    /// Answers one call whose bytes had no room among those of `cross`, which sends them.
    #[napi]
    pub fn answer(
        &self,
        token: f64,
        what: u32,
        code: u32,
        meta: Uint8ArraySlice<'_>,
        body: Uint8ArraySlice<'_>,
    ) -> Result<()> {
        self.serving.with(|serving| serving.answer(token as u64, what, code, &meta, &body))
    }

    /// Writes metadata and body of a call that `cross` had no room for. Both arrays are as long as they.
    #[napi]
    pub fn bytes(&self, token: f64, mut meta: Uint8ArraySlice<'_>, mut body: Uint8ArraySlice<'_>) -> Result<()> {
        self.serving.with(|serving| {
            let call = serving.calls.get(&(token as u64));
            let fits = |call: &&Call| call.meta().len() == meta.len() && call.body().len() == body.len();
            let Some(call) = call.filter(fits) else {
                return Err(refuse(ErrorKind::InvalidArgument, "there is no such call, or its bytes are others"));
            };
            // SAFETY: this thread is JavaScript's, whose arrays both are until this returns, made for this call.
            let (to_meta, to_body) = unsafe { (meta.as_mut(), body.as_mut()) };
            to_meta.copy_from_slice(call.meta());
            to_body.copy_from_slice(call.body());
            Ok(())
        })
    }

    /// Has it shut down by the crossings that follow.
    #[napi]
    pub fn shutdown(&self, limit: f64) {
        self.stopper.shutdown(milliseconds(limit));
    }

    /// Cancels what runs, and closes.
    #[napi]
    pub fn close(&self) {
        drop(self.serving.take());
    }
}

/// The first bytes, if there are as many.
fn cut<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (first, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(first)
}

impl Serving {
    fn answer(&mut self, token: u64, what: u32, code: u32, meta: &[u8], body: &[u8]) -> Result<()> {
        if what == ELEMENT {
            let Some(call) = self.calls.get_mut(&token) else { return Ok(()) };
            call.set_reply_meta(meta);
            return match call.try_send(body) {
                // Its cancelling is told.
                Err(e) if e.kind() == ErrorKind::Interrupted => Ok(()),
                sent => sent.or_throw(),
            };
        }
        // One that was answered already: nothing is lost.
        let Some(mut call) = self.calls.remove(&token) else { return Ok(()) };
        let text = || String::from_utf8_lossy(body).into_owned();
        if !meta.is_empty() {
            call.set_reply_meta(meta);
        }
        match what {
            REPLY => call.reply(body),
            FAULT => call.fail(Fault::new(code, text())),
            FAILED => call.fail_unexpectedly(text()),
            FINISH => call.finish(),
            _ => return Err(refuse(ErrorKind::InvalidArgument, format_args!("there is no answer {what}"))),
        }
        Ok(())
    }

    /// Writes what has come, as far as there is room, and gives how many records that is.
    fn give(&mut self, records: &mut [f64], mut bytes: &mut [u8]) -> u32 {
        let mut given = 0;
        let mut records = records.chunks_exact_mut(RECORD);
        let arrivals = Arc::clone(&self.arrivals);
        let mut arrivals = lock(&arrivals);
        while let Some((token, call)) = arrivals.calls.pop_front() {
            if call.is_cancelled() {
                // Not begun. What its caller is told is that it was cancelled.
                call.fail_unexpectedly("the call was cancelled before it was begun");
                continue;
            }
            let Some(record) = records.next() else {
                arrivals.calls.push_front((token, call));
                return given;
            };
            given += 1;
            let (peer, meta, body) = (call.peer(), call.meta(), call.body());
            let len = meta.len() + body.len();
            let lengths = if len <= bytes.len() {
                let (to, rest) = std::mem::take(&mut bytes).split_at_mut(len);
                let (to_meta, to_body) = to.split_at_mut(meta.len());
                to_meta.copy_from_slice(meta);
                to_body.copy_from_slice(body);
                bytes = rest;
                [meta.len() as f64, body.len() as f64]
            } else {
                [-1.0 - meta.len() as f64, -1.0 - body.len() as f64]
            };
            record.copy_from_slice(&[
                token as f64,
                f64::from(call.method()),
                if call.is_stream() { 2.0 } else { 1.0 },
                call.remaining().map_or(f64::INFINITY, |left| left.as_secs_f64() * 1e3),
                f64::from(peer.uid),
                peer.pid.map_or(-1.0, f64::from),
                lengths[0],
                lengths[1],
            ]);
            self.calls.insert(token, call);
        }
        drop(arrivals);
        let changed = Arc::clone(&self.changed);
        let mut changed = lock(&changed);
        let mut told = 0;
        for token in changed.iter() {
            let call = self.calls.get_mut(token);
            // Of one that is answered nothing is told.
            let Some(call) = call else {
                told += 1;
                continue;
            };
            let Some(record) = records.next() else { break };
            let stopped = call.is_cancelled();
            let room = call.is_stream()
                && matches!(call.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())));
            record[..4].copy_from_slice(&[
                *token as f64,
                -1.0,
                f64::from(u8::from(room)),
                f64::from(u8::from(stopped)),
            ]);
            told += 1;
            given += 1;
        }
        changed.drain(..told);
        given
    }
}
