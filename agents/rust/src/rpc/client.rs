//! The commands of a client.

use std::collections::VecDeque;
use std::task::Poll;
use std::time::Duration;

use ramway::rpc::{CallOptions, CallResult, Client, MethodInfo, Pending, Reply, Status, Stream};

use super::{Calls, Request, Tally, application, bytes, same, words};
use crate::ends::{Ends, OPEN_TIMEOUT};
use crate::line::Line;
use crate::{Stop, measure, named};

/// A client and the calls that it keeps.
pub(crate) struct Calling {
    client: Client,
    kept: VecDeque<Kept>,
    streams: Vec<(Stream, Expected)>,
}

/// A row of calls that were started.
struct Kept {
    calls: Calls,
    pending: VecDeque<(Request, Pending)>,
}

/// What a stream is to bring, and how far it was read.
pub(super) struct Expected {
    seq: u64,
    size: usize,
    count: u64,
    code: u32,
    received: u64,
    pub(super) ended: bool,
}

/// A client that is connected as `open` says.
pub(super) fn connect(name: &str, mut line: Line) -> Result<Client, Stop> {
    let timeout = line.maybe("timeout")?.map_or(OPEN_TIMEOUT, Duration::from_millis);
    let mut connector = Client::connector(name).timeout(timeout).wait_policy(line.wait()?);
    if let Some(bytes) = line.maybe("max_buffered")? {
        connector = connector.max_buffered(bytes);
    }
    line.end()?;
    Ok(connector.connect()?)
}

pub(super) fn say_attached(peer_pid: Option<u32>, max_in_flight: u32) {
    let (pid, peer) = (std::process::id(), peer_pid.unwrap_or(0));
    println!("attached pid={pid} peer_pid={peer} max_in_flight={max_in_flight}");
}

pub(super) fn say_health(outcome: CallResult<()>) {
    match outcome {
        Ok(()) => println!("healthy"),
        Err(error) => match (error.status(), error.kind()) {
            (Some(status), _) => println!("end name={} number={}", status.name(), status as u32),
            (None, kind) => println!("end {}", kind.map(named).unwrap_or_default()),
        },
    }
}

pub(super) fn say_described(methods: &[MethodInfo]) {
    let method = |info: &MethodInfo| match &info.name {
        Some(name) => format!("{} {name}", info.number),
        None => info.number.to_string(),
    };
    println!("described text={}", methods.iter().map(method).collect::<Vec<_>>().join(","));
}

pub(crate) fn open(ends: &mut Ends, name: &str, line: Line) -> Result<(), Stop> {
    let client = connect(name, line)?;
    say_attached(client.peer_pid(), client.max_in_flight());
    ends.client = Some(Calling { client, kept: VecDeque::new(), streams: Vec::new() });
    Ok(())
}

impl Calling {
    pub(crate) fn close(self) {
        // What closing says of a server that is dead does not matter.
        let _ = self.client.close();
    }

    pub(crate) fn obey(&mut self, mut line: Line) -> Result<(), Stop> {
        match line.word.as_str() {
            "call" => self.call(line),
            "start" => self.start(line),
            "collect" => self.collect(line),
            "stream" => self.stream(line),
            "next" => self.next(line),
            "cancel" => self.cancel(line),
            "health" => self.health(line),
            "describe" => self.describe(line),
            "measure" => measure::calls(&mut self.client, line),
            "state" => {
                line.end()?;
                println!("state in_flight={}", self.client.in_flight());
                Ok(())
            }
            _ => Err(Stop::Refused(format!("{} is no command of a client", std::mem::take(&mut line.word)))),
        }
    }

    fn call(&mut self, mut line: Line) -> Result<(), Stop> {
        let calls = Calls::new(&mut line)?;
        let (count, start): (u64, u64) = (line.get("count", 1)?, line.get("start", 0)?);
        let (in_flight, cancel) = (line.get("in_flight", 1)?, line.yes("cancel"));
        line.end()?;
        let client = &mut self.client;
        let mut tally = Tally::new();
        let mut pending = VecDeque::new();
        let oldest = |client: &mut Client, tally: &mut Tally, (request, call): (Request, Pending)| {
            if cancel && request.seq % 2 == 1 {
                tally.cancelled += 1;
                call.cancel(client);
                return Ok(());
            }
            let outcome = call.wait(client);
            calls.count(tally, &request, outcome)
        };
        for seq in start..start + count {
            let request = calls.request(seq);
            if in_flight == 1 && !cancel {
                let outcome = client.call_with(calls.method, &request.body, &calls.options(&request));
                calls.count(&mut tally, &request, outcome)?;
                continue;
            }
            if pending.len() >= in_flight
                && let Some(first) = pending.pop_front()
            {
                oldest(client, &mut tally, first)?;
            }
            match client.start_with(calls.method, &request.body, &calls.options(&request)) {
                Ok(call) => pending.push_back((request, call)),
                Err(error) => calls.count(&mut tally, &request, Err(error))?,
            }
        }
        while let Some(first) = pending.pop_front() {
            oldest(client, &mut tally, first)?;
        }
        tally.say(&format!("called count={count}"));
        Ok(())
    }

    fn start(&mut self, mut line: Line) -> Result<(), Stop> {
        let calls = Calls::new(&mut line)?;
        let (count, start): (u64, u64) = (line.get("count", 1)?, line.get("start", 0)?);
        line.end()?;
        let mut pending = VecDeque::new();
        for seq in start..start + count {
            let request = calls.request(seq);
            let call = self.client.start_with(calls.method, &request.body, &calls.options(&request));
            pending.push_back((request, call.map_err(ramway::Error::from)?));
        }
        self.kept.push_back(Kept { calls, pending });
        println!("started count={count}");
        Ok(())
    }

    fn collect(&mut self, mut line: Line) -> Result<(), Stop> {
        let limit = Duration::from_millis(line.get("timeout", 20_000)?);
        line.end()?;
        let mut tally = Tally::new();
        let mut count = 0;
        while let Some(row) = self.kept.front_mut() {
            while let Some((request, mut call)) = row.pending.pop_front() {
                match call.wait_timeout(&mut self.client, limit) {
                    Poll::Ready(outcome) => row.calls.count(&mut tally, &request, outcome)?,
                    Poll::Pending => {
                        row.pending.push_front((request, call));
                        println!("end {}", named(ramway::ErrorKind::TimedOut));
                        return Ok(());
                    }
                }
                count += 1;
            }
            self.kept.pop_front();
        }
        tally.say(&format!("called count={count}"));
        Ok(())
    }

    fn stream(&mut self, line: Line) -> Result<(), Stop> {
        let (many, options) = Expected::many(line)?;
        let count = many.len();
        for expected in many {
            let stream = self.client.stream_with(4, &expected.body(), &options).map_err(ramway::Error::from)?;
            self.streams.push((stream, expected));
        }
        println!("started count={count}");
        Ok(())
    }

    fn next(&mut self, mut line: Line) -> Result<(), Stop> {
        let limit = Duration::from_millis(line.get("timeout", 20_000)?);
        let mut rounds: Option<u64> = line.maybe("count")?;
        line.end()?;
        let mut tally = Tally::new();
        let mut received = 0;
        while !self.streams.is_empty() && rounds != Some(0) {
            for (stream, expected) in &mut self.streams {
                let Poll::Ready(next) = stream.next_timeout(&mut self.client, limit) else {
                    println!("end {}", named(ramway::ErrorKind::TimedOut));
                    return Ok(());
                };
                received += expected.came(next, &mut tally)?;
            }
            self.streams.retain(|(_, expected)| !expected.ended);
            rounds = rounds.map(|left| left - 1);
        }
        tally.say(&format!("streamed received={received}"));
        Ok(())
    }

    fn cancel(&mut self, line: Line) -> Result<(), Stop> {
        line.end()?;
        let mut count = self.streams.len();
        for (stream, _) in self.streams.drain(..) {
            stream.cancel(&mut self.client);
        }
        for (_, call) in self.kept.drain(..).flat_map(|row| row.pending) {
            count += 1;
            call.cancel(&mut self.client);
        }
        println!("cancelled count={count}");
        Ok(())
    }

    fn health(&mut self, line: Line) -> Result<(), Stop> {
        line.end()?;
        say_health(self.client.ping());
        Ok(())
    }

    fn describe(&mut self, line: Line) -> Result<(), Stop> {
        line.end()?;
        say_described(&self.client.describe().map_err(ramway::Error::from)?);
        Ok(())
    }
}

impl Expected {
    /// The streams of a command, and the options of their calls.
    pub(super) fn many(mut line: Line) -> Result<(Vec<Self>, CallOptions<'static>), Stop> {
        let (count, size): (u32, u32) = (line.need("count")?, line.need("size")?);
        let (code, streams, start): (u32, u64, u64) =
            (line.get("code", 0)?, line.get("streams", 1)?, line.get("start", 0)?);
        let mut options = CallOptions::new();
        if let Some(window) = line.maybe("window")? {
            options = options.window(window);
        }
        if let Some(deadline) = line.maybe("deadline")? {
            options = options.timeout(Duration::from_micros(deadline));
        }
        line.end()?;
        let (size, count) = (size as usize, u64::from(count));
        let one = |seq| Self { seq, size, count, code, received: 0, ended: false };
        Ok(((start..start + streams).map(one).collect(), options))
    }

    pub(super) fn body(&self) -> Vec<u8> {
        words([self.count as u32, self.size as u32, self.code, self.seq as u32])
    }

    /// Counts what came of the stream, if it is as it must be; says how many elements that were.
    pub(super) fn came(&mut self, next: Option<CallResult<Reply>>, tally: &mut Tally) -> Result<u64, Stop> {
        let wrong = |what| Stop::Bad(self.seq, what);
        let whole = || match self.received == self.count {
            true => Ok(()),
            false => Err(wrong(format!("{} elements instead of {}", self.received, self.count))),
        };
        match next {
            Some(Ok(element)) => {
                same("element", element.body(), &bytes(self.seq + self.received, self.size)).map_err(wrong)?;
                self.received += 1;
                tally.bytes += element.body().len() as u64;
                return Ok(1);
            }
            None => {
                whole()?;
                if self.code != 0 {
                    return Err(wrong("it is complete in place of an error".into()));
                }
                tally.add("Ok");
            }
            Some(Err(error)) => {
                if error.status() == Some(Status::Application) {
                    whole()?;
                    application(&error, self.code, &format!("after {}", self.count)).map_err(wrong)?;
                }
                tally.failed(&error);
            }
        }
        self.ended = true;
        Ok(0)
    }
}
