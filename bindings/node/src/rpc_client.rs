//! The native half of an RPC client: the core's, whose calls JavaScript knows by small numbers (places), and what has come for
//! them, many a call into native code.

use crate::buffer::{Buffer, detach, over};
use crate::endpoint::unless_late;
use crate::error::OrThrow;
use crate::handle::Shared;
use crate::opening::{Attempt, blocking, promise};
use crate::options::{milliseconds, policy};
use crate::rpc::{Board, given};
use crate::teardown::close_with;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use ramway::facts::RPC_HEADER;
use ramway::layout::RingBlock;
use ramway::rpc::{CallError, CallOptions, CallResult, Client, ClientConnector, RawClient, Taken};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

// ---- the board: where what lies, for both halves ([`RpcMemory`] tells JavaScript)

/// Double word: in how many milliseconds the client is to act though its descriptor is not readable; infinite: never.
const DUE: usize = 0;
/// Words: how many events there are, whether there may be more, up to where the ring of replies was read.
const COUNT: usize = 2;
const MORE: usize = 3;
const SEEN: usize = 4;
/// Words: the events, and how long one is.
const EVENTS: usize = 16;
const EVENT: usize = 8;
/// Events at a time.
const EVENTS_MAX: usize = 256;
/// Bytes: replies that are copied once more, which is cheaper for them than an ArrayBuffer made by native code.
const INBOX: usize = 4 * (EVENTS + EVENT * EVENTS_MAX);
const INBOX_LEN: usize = 256 << 10;
/// The longest of them.
const SMALL: usize = 16 << 10;
/// Bytes: a request that is not longer than this is written here.
const OUTBOX: usize = INBOX + INBOX_LEN;
const OUTBOX_LEN: usize = 16 << 10;

// Words of an event.
const PLACE: usize = 0;
const WHAT: usize = 1;
/// Where its bytes lie in the inbox, metadata (or the text of an error) first; or [`APART`].
const AT: usize = 2;
/// Bytes of the metadata, or of the text.
const META_LEN: usize = 3;
/// Bytes of the body, or of the message.
const BODY_LEN: usize = 4;
/// Of an error: the status or 0, the number of the kind or 0, the application's number.
const STATUS: usize = 5;
const KIND: usize = 6;
const CODE: usize = 7;

/// The bytes do not lie in the inbox, but in the next two of the buffers that the call gave: metadata and body.
const APART: u32 = u32::MAX;

// What an event is.
const NOTHING: u32 = 0;
const ELEMENT: u32 = 1;
const END: u32 = 2;
/// An error of a call that has not run.
const FAILED: u32 = 3;
/// An error of a call that may have run.
const FAILED_HALFWAY: u32 = 4;
/// A stream has something to be taken.
const CHANGED: u32 = 5;

/// The memory of a client, and where what lies in it.
#[napi(object, object_from_js = false)]
pub struct RpcMemory {
    #[napi(ts_type = "ArrayBuffer")]
    pub board: Buffer,
    /// The block of the ring of replies in its header page.
    #[napi(ts_type = "ArrayBuffer")]
    pub header: Buffer,
    pub events: u32,
    pub event: u32,
    pub inbox: u32,
    pub outbox: u32,
    pub outbox_len: u32,
    pub small: u32,
}

/// Options of connecting.
#[napi(object)]
pub struct RpcConnectSettings {
    /// In milliseconds.
    pub timeout: Option<f64>,
    pub allow_uids: Option<Vec<u32>>,
    pub wait: Option<String>,
    pub membarrier: Option<bool>,
    pub max_buffered: Option<f64>,
}

impl RpcConnectSettings {
    fn connector(&self, name: &str) -> Result<ClientConnector> {
        let mut connector = Client::connector(name);
        if let Some(timeout) = self.timeout {
            connector = connector.timeout(milliseconds(timeout));
        }
        if let Some(membarrier) = self.membarrier {
            connector = connector.membarrier(membarrier);
        }
        if let Some(bytes) = self.max_buffered {
            connector = connector.max_buffered(bytes as usize);
        }
        let connector = connector.allow_uids(self.allow_uids.as_deref().unwrap_or_default());
        Ok(connector.wait_policy(policy(self.wait.as_deref())?))
    }
}

struct Inside {
    raw: RawClient,
    /// The core's number of the call at a place, and whether its reply is a stream. Of a place whose call is over they say
    /// nothing any more.
    calls: Vec<(u64, bool)>,
    board: Arc<Board>,
    /// Events on the board, and the bytes of them in the inbox.
    count: usize,
    used: usize,
    /// What did not go into the inbox.
    apart: Vec<Vec<u8>>,
}

fn place_of(number: u64) -> u32 {
    number as u32
}

impl Inside {
    /// Empties the board.
    fn begin(&mut self) {
        (self.count, self.used) = (0, 0);
    }

    /// Says on the board what there is, and gives what did not go into the inbox.
    fn finish(&mut self, env: &Env, more: bool) -> Result<Option<Vec<Buffer>>> {
        self.board.set(COUNT, self.count as u32);
        self.board.set(MORE, more.into());
        self.board.set(SEEN, self.raw.incoming().start().peer as u32);
        self.note_due();
        if self.apart.is_empty() {
            return Ok(None);
        }
        self.apart.drain(..).map(|bytes| given(env, bytes)).collect::<Result<_>>().map(Some)
    }

    fn note_due(&mut self) {
        let due = self.raw.due_in().map_or(f64::INFINITY, |due| due.as_secs_f64() * 1e3);
        self.board.set_number(DUE, due);
    }

    fn word(&self, of: usize, value: u32) {
        self.board.set(EVENTS + EVENT * self.count + of, value);
    }

    /// Another event.
    fn add(&mut self, place: u32, what: u32, head: &[u8], body: &[u8]) {
        self.word(PLACE, place);
        self.word(WHAT, what);
        self.word(META_LEN, head.len() as u32);
        self.word(BODY_LEN, body.len() as u32);
        if head.len() + body.len() <= SMALL {
            self.word(AT, self.used as u32);
            self.board.put(INBOX + self.used, head);
            self.board.put(INBOX + self.used + head.len(), body);
            self.used += head.len() + body.len();
        } else {
            self.word(AT, APART);
            self.apart.push(head.to_vec());
            self.apart.push(body.to_vec());
        }
        self.count += 1;
    }

    fn add_reply(&mut self, place: u32, what: u32, reply: ramway::rpc::Reply) {
        let (meta_len, body_len) = (reply.meta().len(), reply.body().len());
        if meta_len + body_len <= SMALL {
            return self.add(place, what, reply.meta(), reply.body());
        }
        self.word(PLACE, place);
        self.word(WHAT, what);
        self.word(META_LEN, meta_len as u32);
        self.word(BODY_LEN, body_len as u32);
        self.word(AT, APART);
        self.apart.push(reply.meta().to_vec());
        self.apart.push(reply.into_body());
        self.count += 1;
    }

    #[cold]
    fn add_error(&mut self, place: u32, error: &CallError) {
        let what = if error.may_have_run() { FAILED_HALFWAY } else { FAILED };
        self.word(STATUS, error.status().map_or(0, |status| status as u32));
        self.word(KIND, error.kind().map_or(0, |kind| kind.code() as u32));
        self.word(CODE, error.code());
        let text = if error.status().is_some() { error.text() } else { String::new() };
        self.add(place, what, text.as_bytes(), error.to_string().as_bytes());
    }

    fn add_taken(&mut self, place: u32, taken: Taken) {
        match taken {
            Taken::NotYet => self.add(place, NOTHING, &[], &[]),
            Taken::Element(element) => self.add_reply(place, ELEMENT, element),
            Taken::End(Ok(reply)) => self.add_reply(place, END, reply),
            Taken::End(Err(error)) => self.add_error(place, &error),
        }
    }

    /// Takes what has come for calls, as far as there is room on the board; whether there may be more.
    fn list(&mut self) -> bool {
        while self.count < EVENTS_MAX && self.used + SMALL <= INBOX_LEN {
            let Some(number) = self.raw.next_changed() else { return false };
            let place = place_of(number);
            if self.calls[place as usize].1 {
                self.add(place, CHANGED, &[], &[]);
                continue;
            }
            match self.raw.take(number) {
                Taken::NotYet => {}
                taken => self.add_taken(place, taken),
            }
        }
        true
    }

    /// The place of a call that was made; an error is an event, and the place -1.
    fn started(&mut self, started: CallResult<u64>, is_stream: bool) -> i32 {
        self.note_due();
        match started {
            Ok(number) => {
                let place = place_of(number) as usize;
                if place >= self.calls.len() {
                    self.calls.resize(place + 1, (0, false));
                }
                self.calls[place] = (number, is_stream);
                place as i32
            }
            Err(error) => {
                self.begin();
                self.add_error(0, &error);
                -1
            }
        }
    }

    fn number(&self, place: u32) -> u64 {
        self.calls.get(place as usize).map_or(0, |call| call.0)
    }
}

/// `window` 0: one reply. `timeout` negative: none.
fn options<'a>(timeout: f64, window: u32, meta: &'a [u8]) -> CallOptions<'a> {
    let mut options = CallOptions::new().meta(meta);
    if window != 0 {
        options = options.window(window);
    }
    if timeout >= 0.0 { options.timeout(milliseconds(timeout)) } else { options }
}

/// A client.
#[napi]
pub struct NativeRpcClient {
    core: Arc<Shared<Inside>>,
    max_in_flight: u32,
    max_request_len: u32,
    peer_uid: u32,
    peer_pid: Option<u32>,
}

impl NativeRpcClient {
    fn wrap(mut raw: RawClient) -> Self {
        raw.list_changed();
        Self {
            max_in_flight: raw.max_in_flight(),
            max_request_len: (raw.max_request_len() - RPC_HEADER) as u32,
            peer_uid: raw.peer_uid(),
            peer_pid: raw.peer_pid(),
            core: Shared::new(
                Inside {
                    raw,
                    calls: Vec::new(),
                    board: Board::new(OUTBOX + OUTBOX_LEN),
                    count: 0,
                    used: 0,
                    apart: Vec::new(),
                },
                "RPC client",
            ),
        }
    }
}

#[napi]
impl NativeRpcClient {
    /// Asked for once, by the object that works on it.
    #[napi]
    pub fn memory(&self, env: Env) -> Result<RpcMemory> {
        close_with(&env, &self.core)?;
        let owner = Arc::clone(&self.core);
        self.core.with(|inside| {
            let block = inside.raw.incoming().start().block;
            inside.begin();
            inside.finish(&env, false)?;
            Ok(RpcMemory {
                board: inside.board.buffer(&env)?,
                // SAFETY: the block is mapped while the connection is open; `close` detaches this buffer first.
                header: unsafe { over(&env, block.cast_mut().cast(), size_of::<RingBlock>(), owner) }?,
                events: EVENTS as u32,
                event: EVENT as u32,
                inbox: INBOX as u32,
                outbox: OUTBOX as u32,
                outbox_len: OUTBOX_LEN as u32,
                small: SMALL as u32,
            })
        })
    }

    /// Makes a call whose metadata and then body lie in the outbox. `window` 0: its reply is one; else a stream. `timeout`
    /// negative: none. Gives its place; -1: an error, which is the event.
    #[napi]
    pub fn start(&self, method: u32, window: u32, timeout: f64, meta_len: u32, body_len: u32) -> Result<i32> {
        self.core.with(|inside| {
            let board = Arc::clone(&inside.board);
            // SAFETY: native code never writes to the outbox.
            let bytes = unsafe { board.bytes(OUTBOX, meta_len as usize + body_len as usize) };
            let (meta, body) = bytes.split_at(meta_len as usize);
            let started = inside.raw.start(method, body, &options(timeout, window, meta), window != 0);
            Ok(inside.started(started, window != 0))
        })
    }

    /// The same with bytes that are too many for the outbox.
    #[napi]
    pub fn start_with(&self, method: u32, window: u32, timeout: f64, meta: &[u8], body: &[u8]) -> Result<i32> {
        self.core.with(|inside| {
            let started = inside.raw.start(method, body, &options(timeout, window, meta), window != 0);
            Ok(inside.started(started, window != 0))
        })
    }

    /// Receives what is there, ends the calls whose time is over, sends what is due, and tells of what has come as events. `tell`:
    /// the descriptor is to tell of what comes next, as long as the events are fewer than there is room for.
    #[napi(ts_return_type = "ArrayBuffer[] | null")]
    pub fn progress(&self, env: Env, tell: bool) -> Result<Option<Vec<Buffer>>> {
        self.core.with(|inside| {
            inside.begin();
            let received = if tell { inside.raw.progress() } else { inside.raw.progress_untold() };
            let listed = inside.list();
            inside.finish(&env, received || listed)
        })
    }

    /// What has come for a call, as one event.
    #[napi(ts_return_type = "ArrayBuffer[] | null")]
    pub fn take(&self, env: Env, place: u32) -> Result<Option<Vec<Buffer>>> {
        self.core.with(|inside| {
            inside.begin();
            let taken = inside.raw.take(inside.number(place));
            inside.add_taken(place, taken);
            inside.finish(&env, false)
        })
    }

    /// Lets go of a call, whose place means nothing from now on.
    #[napi]
    pub fn cancel(&self, place: u32) -> Result<()> {
        self.core.with(|inside| {
            inside.raw.cancel(inside.number(place));
            inside.note_due();
            Ok(())
        })
    }

    /// Blocks until something has come for a call, for at most this long, and gives it as one event.
    #[napi(ts_return_type = "ArrayBuffer[] | null")]
    pub fn wait(&self, env: Env, place: u32, milliseconds: f64) -> Result<Option<Vec<Buffer>>> {
        let limit = Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or_default();
        self.core.with(|inside| {
            inside.begin();
            let number = inside.number(place);
            // Whether it was worth it, taking finds out.
            unless_late(inside.raw.wait(number, Some(limit)))?;
            let taken = inside.raw.take(number);
            inside.add_taken(place, taken);
            inside.finish(&env, false)
        })
    }

    /// Calls that are sent and have no final reply.
    #[napi(getter)]
    pub fn in_flight(&self) -> Result<u32> {
        self.core.with(|inside| Ok(inside.raw.in_flight() as u32))
    }

    /// The readiness descriptor. It belongs to this object.
    #[napi]
    pub fn descriptor(&self) -> Result<i32> {
        self.core.with(|inside| Ok(inside.raw.readiness().or_throw()?.as_raw_fd()))
    }

    /// Whether waiting begins with polling: not if it sleeps at once, or there is one CPU.
    #[napi]
    pub fn polls(&self) -> Result<bool> {
        self.core.with(|inside| Ok(inside.raw.incoming().polls()))
    }

    /// How calls wait from now on.
    #[napi]
    pub fn set_wait(&self, name: String) -> Result<()> {
        let policy = policy(Some(&name))?;
        self.core.with(|inside| {
            inside.raw.set_wait_policy(policy);
            Ok(())
        })
    }

    /// Ends the connection. `header` is detached first.
    #[napi]
    pub fn close(&self, env: Env, #[napi(ts_arg_type = "ArrayBuffer")] header: Unknown<'_>) -> Result<()> {
        detach(env, header)?;
        let Some(inside) = self.core.take() else { return Ok(()) };
        // What it is dead of was said by its calls.
        let _ = inside.raw.close();
        Ok(())
    }

    /// How many calls the server lets this client have in flight.
    #[napi(getter)]
    pub fn max_in_flight(&self) -> u32 {
        self.max_in_flight
    }

    /// Bytes of the longest request.
    #[napi(getter)]
    pub fn max_request_len(&self) -> u32 {
        self.max_request_len
    }

    #[napi(getter)]
    pub fn peer_uid(&self) -> u32 {
        self.peer_uid
    }

    #[napi(getter)]
    pub fn peer_pid(&self) -> Option<u32> {
        self.peer_pid
    }

    /// Whether the server's process holds its end of the connection.
    #[napi(getter)]
    pub fn peer_alive(&self) -> Result<bool> {
        self.core.with(|inside| Ok(inside.raw.is_peer_alive()))
    }
}

/// Connects to the RPC server at `name`.
#[napi(ts_return_type = "Promise<NativeRpcClient>")]
pub fn rpc_connect<'env>(
    env: &'env Env,
    attempt: &Attempt,
    name: String,
    settings: RpcConnectSettings,
) -> Result<Object<'env>> {
    let connector = settings.connector(&name)?;
    promise(env, attempt, move |go_on| connector.connect_raw(go_on), |_, raw| Ok(NativeRpcClient::wrap(raw)))
}

#[napi]
pub fn rpc_connect_sync(env: Env, name: String, settings: RpcConnectSettings) -> Result<NativeRpcClient> {
    let connector = settings.connector(&name)?;
    blocking(&env, |go_on| connector.connect_raw(go_on)).map(NativeRpcClient::wrap)
}
