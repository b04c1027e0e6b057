//! Rust's agent: `agents/README.md` has the protocol.

mod ends;
mod line;
mod look;
mod measure;
mod message;
mod rpc;
mod stream;
mod talk;
mod tensor;
mod topic;

use std::process::ExitCode;

use ends::Ends;
use line::Line;
use ramway::{Error, ErrorKind};

/// Why the agent ends, or what a command answers instead.
pub(crate) enum Stop {
    /// A call failed.
    Error(Error),
    /// A message did not arrive as it was sent.
    Bad(u64, String),
    /// A command that is not understood.
    Refused(String),
}

impl From<Error> for Stop {
    fn from(cause: Error) -> Self {
        Self::Error(cause)
    }
}

fn main() -> ExitCode {
    let mut ends = Ends::default();
    while let Some(line) = Line::next() {
        match obey(&mut ends, line) {
            Ok(()) => {}
            Err(Stop::Error(cause)) => println!("error {} text={cause}", named(cause.kind())),
            Err(Stop::Bad(seq, what)) => {
                println!("bad seq={seq} text={what}");
                return ExitCode::FAILURE;
            }
            Err(Stop::Refused(what)) => {
                println!("refused text={what}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

/// What sends: a topic's publisher, or else a sender.
macro_rules! with_sending {
    ($ends:ident, |$tx:ident| $call:expr) => {
        match &mut $ends.publisher {
            Some($tx) => $call,
            None => {
                let $tx = $ends.sending()?;
                $call
            }
        }
    };
}

/// What receives: a topic's subscriber, or else a receiver.
macro_rules! with_receiving {
    ($ends:ident, |$rx:ident| $call:expr) => {
        match &mut $ends.subscriber {
            Some($rx) => $call,
            None => {
                let $rx = $ends.receiving()?;
                $call
            }
        }
    };
}

fn obey(ends: &mut Ends, mut line: Line) -> Result<(), Stop> {
    match (line.word.as_str(), &mut ends.server, &mut ends.client, &mut ends.tasks) {
        ("open", ..) => return ends.open(line),
        ("close", ..) => return ends.close(line),
        (_, Some(server), ..) => return server.obey(line),
        (_, _, Some(client), _) => return client.obey(line),
        (_, _, _, Some(tasks)) => return tasks.obey(line),
        _ => {}
    }
    match line.word.as_str() {
        "produce" => with_sending!(ends, |tx| stream::produce(tx, line)),
        "consume" => with_receiving!(ends, |rx| stream::consume(rx, line)),
        "last" => with_sending!(ends, |tx| talk::last(tx, line)),
        "take" => with_receiving!(ends, |rx| talk::take(rx, line)),
        "echo" => talk::echo(ends, line),
        "ping" => talk::ping(ends, line),
        "tensor" => with_sending!(ends, |tx| tensor::send(tx, line)),
        "write" => with_sending!(ends, |tx| look::write(tx, line)),
        "hold" => with_receiving!(ends, |rx| look::hold(rx, line)),
        "region" => look::region(line),
        "measure" => measure::measure(ends, line),
        "lock" => measure::lock(line),
        "about" => {
            println!("about text=Rust");
            Ok(())
        }
        _ => Err(Stop::Refused(format!("{} is no command", std::mem::take(&mut line.word)))),
    }
}

/// An error as events name it.
pub(crate) fn named(kind: ErrorKind) -> String {
    format!("name={} number={}", kind.name(), kind.code())
}
