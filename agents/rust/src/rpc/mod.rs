//! RPC: what a call asks, what it must bring, and what came of many.

pub(crate) mod client;
pub(crate) mod server;
pub(crate) mod tasks;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ramway::rpc::{CallError, CallOptions, CallResult, Reply, Status, method_id};

use crate::Stop;
use crate::ends::Ends;
use crate::line::Line;
use crate::message::{Messages, Sizes};

/// The method that is registered by name.
pub(crate) const SUM: &str = "Agent.Sum";

/// Opens a server or a client, and says so.
pub(crate) fn open(ends: &mut Ends, name: &str, role: &str, mut line: Line) -> Result<(), Stop> {
    match (role, line.text("kind").as_deref()) {
        ("client", None) => client::open(ends, name, line),
        ("client", Some("async")) => tasks::open(ends, name, line),
        ("server", None) => server::open(ends, name, line),
        (_, kind) => Err(Stop::Refused(format!("role={role} kind={}", kind.unwrap_or_default()))),
    }
}

/// The bytes that begin with this one.
fn bytes(first: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (first + i) as u8).collect()
}

fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Words of a body, if it has just that many.
fn read<const N: usize>(body: &[u8]) -> Option<[u32; N]> {
    let (chunks, rest) = body.as_chunks::<4>();
    let words: Vec<_> = chunks.iter().map(|word| u32::from_le_bytes(*word)).collect();
    words.try_into().ok().filter(|_| rest.is_empty())
}

/// A row of calls.
struct Calls {
    method: u32,
    messages: Messages,
    meta_len: usize,
    deadline: Option<Duration>,
}

/// One call.
struct Request {
    seq: u64,
    body: Vec<u8>,
    meta: Vec<u8>,
}

impl Calls {
    fn new(line: &mut Line) -> Result<Self, Stop> {
        let method = match line.need::<String>("method")?.as_str() {
            "sum" => method_id(SUM),
            number => number.parse().map_err(|_| Stop::Refused(format!("method={number}")))?,
        };
        let messages = Messages::new(line.get("sizes", Sizes::Mixed)?, line.get("longest", 4096)?);
        let deadline = line.maybe("deadline")?.map(Duration::from_micros);
        Ok(Self { method, messages, meta_len: line.get("meta", 0)?, deadline })
    }

    fn request(&self, seq: u64) -> Request {
        let payload = || self.messages.make(seq).payload;
        let body = match self.method {
            2 => words([seq as u32, payload().len() as u32]),
            3 => [&words([seq as u32 + 1]), format!("call {seq}").as_bytes()].concat(),
            6 | 7 => Vec::new(),
            _ => payload().to_vec(),
        };
        Request { seq, body, meta: bytes(seq + 1, self.meta_len) }
    }

    fn options<'a>(&self, request: &'a Request) -> CallOptions<'a> {
        let options = CallOptions::new().meta(&request.meta);
        self.deadline.map_or(options, |deadline| options.timeout(deadline))
    }

    /// What is wrong with a reply.
    fn check(&self, request: &Request, reply: &Reply) -> Result<(), String> {
        let expected = match self.method {
            1 | 5 => &request.body,
            2 => &bytes(request.seq, self.messages.make(request.seq).payload.len()),
            7 => return self.check_seven(reply.body()),
            number if number == method_id(SUM) => &words([crc32fast::hash(&request.body)]),
            number => return Err(format!("method {number} replied")),
        };
        same("body", reply.body(), expected)?;
        same("metadata", reply.meta(), if matches!(self.method, 1 | 5) { &request.meta } else { &[] })
    }

    fn check_seven(&self, body: &[u8]) -> Result<(), String> {
        let [pid, left] = read(body).ok_or_else(|| format!("method 7 replied with {} bytes", body.len()))?;
        let most = self.deadline.map_or(0, |deadline| deadline.as_micros().div_ceil(1000));
        if pid != std::process::id() || u128::from(left) > most || (left == 0) != (most == 0) {
            return Err(format!("method 7 replied process {pid} and {left} ms of {most}"));
        }
        Ok(())
    }

    /// Counts what came of a call, if it is as it must be.
    fn count(&self, tally: &mut Tally, request: &Request, outcome: CallResult<Reply>) -> Result<(), Stop> {
        let wrong = |what| Stop::Bad(request.seq, what);
        match outcome {
            Ok(reply) => {
                self.check(request, &reply).map_err(wrong)?;
                tally.bytes += reply.body().len() as u64;
                tally.add("Ok");
            }
            Err(error) => {
                if error.status() == Some(Status::Application) && self.method == 3 {
                    application(&error, request.seq as u32 + 1, &format!("call {}", request.seq)).map_err(wrong)?;
                }
                tally.failed(&error);
            }
        }
        Ok(())
    }
}

/// Whether an error of the application has this number and this text.
fn application(error: &CallError, code: u32, text: &str) -> Result<(), String> {
    if (error.code(), error.text().as_str()) == (code, text) {
        return Ok(());
    }
    Err(format!("error {} with '{}' instead of {code} with '{text}'", error.code(), error.text()))
}

fn same(what: &str, found: &[u8], expected: &[u8]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{what} of {} bytes instead of {}", found.len(), expected.len()));
    }
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        Some(at) => Err(format!("byte {at} of the {what} is {} instead of {}", found[at], expected[at])),
        None => Ok(()),
    }
}

/// How many calls had which outcome.
struct Tally {
    began: Instant,
    names: BTreeMap<&'static str, u64>,
    cancelled: u64,
    may_have_run: u64,
    bytes: u64,
}

impl Tally {
    fn new() -> Self {
        Self { began: Instant::now(), names: BTreeMap::new(), cancelled: 0, may_have_run: 0, bytes: 0 }
    }

    fn add(&mut self, name: &'static str) {
        *self.names.entry(name).or_default() += 1;
    }

    fn failed(&mut self, error: &CallError) {
        let status = error.status().map(Status::name);
        self.add(status.or(error.kind().map(ramway::ErrorKind::name)).unwrap_or_default());
        self.may_have_run += u64::from(error.may_have_run());
    }

    /// `called` and `streamed`.
    fn say(&self, begin: &str) {
        let mut line = begin.to_owned();
        for (name, count) in &self.names {
            line += &format!(" {name}={count}");
        }
        if self.cancelled > 0 {
            line += &format!(" cancelled={}", self.cancelled);
        }
        let elapsed = self.began.elapsed().as_millis();
        println!("{line} may_have_run={} bytes={} elapsed_ms={elapsed}", self.may_have_run, self.bytes);
    }
}
