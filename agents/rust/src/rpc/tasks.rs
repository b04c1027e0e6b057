//! The commands of a client for tasks.

use std::collections::VecDeque;
use std::task::Poll;
use std::time::Duration;

use ramway::rpc::tokio::{Client, Pending, Stream};
use ramway::rpc::{CallResult, Reply};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::client::{Expected, connect, say_attached, say_described, say_health};
use super::{Calls, Request, Tally};
use crate::ends::Ends;
use crate::line::Line;
use crate::{Stop, named};

/// A client and the calls that it keeps.
pub(crate) struct Tasks {
    runtime: Runtime,
    client: Client,
    kept: VecDeque<(Calls, VecDeque<(Request, Pending)>)>,
    streams: Vec<(Stream, Expected)>,
}

/// A call whose outcome a task of its own waits for.
type Waiting = (Request, JoinHandle<CallResult<Reply>>);

pub(crate) fn open(ends: &mut Ends, name: &str, line: Line) -> Result<(), Stop> {
    let client = connect(name, line)?;
    // Two threads: so tasks that wait for the same client hand over to each other.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|cause| Stop::Refused(format!("no runtime: {cause}")))?;
    let client = runtime.block_on(async { Client::new(client) })?;
    say_attached(client.peer_pid(), client.max_in_flight());
    ends.tasks = Some(Tasks { runtime, client, kept: VecDeque::new(), streams: Vec::new() });
    Ok(())
}

impl Tasks {
    pub(crate) fn close(self) {
        let Self { runtime, client, kept, streams } = self;
        // What it says where it was closed before does not matter.
        let _ = client.close();
        // Their descriptors are the runtime's.
        runtime.block_on(async { drop((kept, streams, client)) });
    }

    pub(crate) fn obey(&mut self, mut line: Line) -> Result<(), Stop> {
        let Self { runtime, client, kept, streams } = self;
        match line.word.as_str() {
            "call" => runtime.block_on(call(client, line)),
            "start" => runtime.block_on(start(client, kept, line)),
            "collect" => runtime.block_on(collect(kept, line)),
            "stream" => runtime.block_on(stream(client, streams, line)),
            "next" => runtime.block_on(next(streams, line)),
            "cancel" => {
                line.end()?;
                let calls: usize = kept.iter().map(|(_, row)| row.len()).sum();
                let count = calls + streams.len();
                runtime.block_on(async {
                    kept.clear();
                    streams.clear();
                });
                println!("cancelled count={count}");
                Ok(())
            }
            "health" => {
                line.end()?;
                say_health(runtime.block_on(client.ping()));
                Ok(())
            }
            "describe" => {
                line.end()?;
                say_described(&runtime.block_on(client.describe()).map_err(ramway::Error::from)?);
                Ok(())
            }
            "state" => {
                line.end()?;
                println!("state in_flight={}", client.in_flight());
                Ok(())
            }
            _ => Err(Stop::Refused(format!("{} is no command of a client", std::mem::take(&mut line.word)))),
        }
    }
}

async fn call(client: &Client, mut line: Line) -> Result<(), Stop> {
    let calls = Calls::new(&mut line)?;
    let (count, start): (u64, u64) = (line.get("count", 1)?, line.get("start", 0)?);
    let (in_flight, cancel) = (line.get("in_flight", 1)?, line.yes("cancel"));
    line.end()?;
    let mut tally = Tally::new();
    let mut waiting = VecDeque::<Waiting>::new();
    for seq in start..start + count {
        let request = calls.request(seq);
        if in_flight == 1 && !cancel {
            let outcome = client.call_with(calls.method, &request.body, &calls.options(&request)).await;
            calls.count(&mut tally, &request, outcome)?;
            continue;
        }
        if waiting.len() >= in_flight
            && let Some(first) = waiting.pop_front()
        {
            oldest(&calls, cancel, &mut tally, first).await?;
        }
        // Made here, in its order; a task waits for it.
        match client.start_with(calls.method, &request.body, &calls.options(&request)) {
            Ok(call) => waiting.push_back((request, tokio::spawn(call))),
            Err(error) => calls.count(&mut tally, &request, Err(error))?,
        }
    }
    while let Some(first) = waiting.pop_front() {
        oldest(&calls, cancel, &mut tally, first).await?;
    }
    tally.say(&format!("called count={count}"));
    Ok(())
}

async fn oldest(calls: &Calls, cancel: bool, tally: &mut Tally, (request, task): Waiting) -> Result<(), Stop> {
    if cancel && request.seq % 2 == 1 {
        tally.cancelled += 1;
        task.abort();
        // Until the call was dropped, it is not cancelled. One that had ended says so.
        let _ = task.await;
        return Ok(());
    }
    match task.await {
        Ok(outcome) => calls.count(tally, &request, outcome),
        Err(failure) => std::panic::resume_unwind(failure.into_panic()),
    }
}

async fn start(
    client: &Client,
    kept: &mut VecDeque<(Calls, VecDeque<(Request, Pending)>)>,
    mut line: Line,
) -> Result<(), Stop> {
    let calls = Calls::new(&mut line)?;
    let (count, start): (u64, u64) = (line.get("count", 1)?, line.get("start", 0)?);
    line.end()?;
    let mut row = VecDeque::new();
    for seq in start..start + count {
        let request = calls.request(seq);
        let call = client.start_with(calls.method, &request.body, &calls.options(&request));
        row.push_back((request, call.map_err(ramway::Error::from)?));
    }
    kept.push_back((calls, row));
    println!("started count={count}");
    Ok(())
}

async fn collect(kept: &mut VecDeque<(Calls, VecDeque<(Request, Pending)>)>, mut line: Line) -> Result<(), Stop> {
    let limit = Duration::from_millis(line.get("timeout", 20_000)?);
    line.end()?;
    let mut tally = Tally::new();
    let mut count = 0;
    while let Some((calls, row)) = kept.front_mut() {
        while let Some((request, call)) = row.front_mut() {
            let Ok(outcome) = timeout(limit, call).await else {
                println!("end {}", named(ramway::ErrorKind::TimedOut));
                return Ok(());
            };
            calls.count(&mut tally, request, outcome)?;
            row.pop_front();
            count += 1;
        }
        kept.pop_front();
    }
    tally.say(&format!("called count={count}"));
    Ok(())
}

async fn stream(client: &Client, streams: &mut Vec<(Stream, Expected)>, line: Line) -> Result<(), Stop> {
    let (many, options) = Expected::many(line)?;
    let count = many.len();
    for expected in many {
        let stream = client.stream_with(4, &expected.body(), &options).map_err(ramway::Error::from)?;
        streams.push((stream, expected));
    }
    println!("started count={count}");
    Ok(())
}

async fn next(streams: &mut Vec<(Stream, Expected)>, mut line: Line) -> Result<(), Stop> {
    let limit = Duration::from_millis(line.get("timeout", 20_000)?);
    let mut rounds: Option<u64> = line.maybe("count")?;
    line.end()?;
    let mut tally = Tally::new();
    let mut received = 0;
    while !streams.is_empty() && rounds != Some(0) {
        for (stream, expected) in streams.iter_mut() {
            let Poll::Ready(next) = stream.next_timeout(limit).await else {
                println!("end {}", named(ramway::ErrorKind::TimedOut));
                return Ok(());
            };
            received += expected.came(next, &mut tally)?;
        }
        streams.retain(|(_, expected)| !expected.ended);
        rounds = rounds.map(|left| left - 1);
    }
    tally.say(&format!("streamed received={received}"));
    Ok(())
}
