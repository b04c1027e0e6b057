//! What the other process does as the client of an RPC server. Every call that it has begun has a number, from 0 on.

use std::collections::{BTreeMap, HashMap};
use std::str::SplitAsciiWhitespace;
use std::time::Duration;

use crate::{Refused, WAIT_MAX, number, refused};
use ramway::WaitPolicy;
use ramway::rpc::{CallError, CallOptions, CallResult, Client, Pending, Reply, Status, Stream};

pub(crate) struct Calls {
    client: Client,
    next: u64,
    pending: BTreeMap<u64, Pending>,
    streams: HashMap<u64, Stream>,
}

pub(crate) fn open(name: &str, wait: WaitPolicy) -> Result<Calls, Refused> {
    let client = Client::connector(name).timeout(WAIT_MAX).wait_policy(wait).connect();
    let client = client.map_err(|cause| refused(&cause, 0))?;
    Ok(Calls { client, next: 0, pending: BTreeMap::new(), streams: HashMap::new() })
}

impl Calls {
    /// One command, after the word `call`.
    pub(crate) fn command(&mut self, words: &mut SplitAsciiWhitespace<'_>) -> Result<String, Refused> {
        Ok(match words.next().unwrap_or("") {
            "start" => {
                let (count, method, size, timeout): (u64, u32, usize, u64) =
                    (number(words.next())?, number(words.next())?, number(words.next())?, number(words.next())?);
                let body = vec![b'x'; size];
                let first = self.next;
                for _ in 0..count {
                    let options = limited(CallOptions::new(), timeout);
                    match self.client.start_with(method, &body, &options) {
                        Ok(call) => drop(self.pending.insert(self.next, call)),
                        Err(error) => return Ok(failed(&error)),
                    }
                    self.next += 1;
                }
                format!("started first={first}")
            }
            "wait" => {
                let number = number(words.next())?;
                let call = self.pending.remove(&number).ok_or("no such call")?;
                said(call.wait(&mut self.client))
            }
            "wait-all" => {
                let mut outcomes = BTreeMap::<String, u64>::new();
                while let Some((_, call)) = self.pending.pop_first() {
                    let outcome = match call.wait(&mut self.client) {
                        Ok(_) => "Ok".to_owned(),
                        Err(error) => name(&error),
                    };
                    *outcomes.entry(outcome).or_default() += 1;
                }
                outcomes.iter().fold("waited".to_owned(), |said, (name, count)| format!("{said} {name}={count}"))
            }
            "cancel" => {
                let number: u64 = number(words.next())?;
                if let Some(call) = self.pending.remove(&number) {
                    call.cancel(&mut self.client);
                } else {
                    self.streams.remove(&number).ok_or("no such call")?.cancel(&mut self.client);
                }
                "cancelled".to_owned()
            }
            "stream" => {
                let (method, body, window, timeout) =
                    (number(words.next())?, words.next().unwrap_or(""), number(words.next())?, number(words.next())?);
                let options = limited(CallOptions::new().window(window), timeout);
                match self.client.stream_with(method, body.as_bytes(), &options) {
                    Ok(stream) => drop(self.streams.insert(self.next, stream)),
                    Err(error) => return Ok(failed(&error)),
                }
                self.next += 1;
                format!("started first={}", self.next - 1)
            }
            "next" => {
                let number: u64 = number(words.next())?;
                let stream = self.streams.get_mut(&number).ok_or("no such stream")?;
                stream.next(&mut self.client).map_or_else(|| "complete".to_owned(), said)
            }
            "state" => {
                self.client.progress();
                format!("state in_flight={}", self.client.in_flight())
            }
            _ => return Err("an unknown command of a client".into()),
        })
    }
}

/// Milliseconds; 0: no limit.
fn limited(options: CallOptions<'_>, timeout: u64) -> CallOptions<'_> {
    if timeout == 0 { options } else { options.timeout(Duration::from_millis(timeout)) }
}

fn said(outcome: CallResult<Reply>) -> String {
    match outcome {
        Ok(reply) => format!("reply text={}", String::from_utf8_lossy(reply.body())),
        Err(error) => failed(&error),
    }
}

fn name(error: &CallError) -> String {
    let kind = || error.kind().map_or("", |kind| kind.name());
    error.status().map_or_else(|| kind().to_owned(), |status: Status| status.name().to_owned())
}

fn failed(error: &CallError) -> String {
    let (code, ran) = (error.code(), error.may_have_run());
    format!("failed status={} code={code} may_have_run={ran} text={}", name(error), error.text())
}
