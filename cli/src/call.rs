//! `ramway call`: one call of a method of an RPC server.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, StdoutLock, Write};
use std::task::Poll;
use std::time::{Duration, Instant};

use ramway::ErrorKind;
use ramway::rpc::{CallError, CallOptions, CallResult, Client, Pending, Reply, Status, Stream, method_id};

use crate::failure::{self, Failure, Outcome};
use crate::interrupt::{Interrupt, SLICE};
use crate::output;
use crate::standard;
use crate::units::{parse_duration, short};

const NOTES: &str = "\
Calls METHOD of the RPC server NAME and writes the reply's bytes to standard
output. METHOD is a number (7, 0x7) or a name (Store.Get), whose number is made
from it as in every language. The request's bytes are TEXT, or what FILE holds;
`@-` is standard input.

With --stream the reply is a stream: its elements are written one after another
as they come. --lines writes a newline after each. Ctrl-C cancels the call.
On a terminal what is no text is shown as escapes; a file or a pipe gets the
bytes as they are.

Where the server ends the call with an error, its status, code and text are on
standard error, and whether the call may have been run.

Exit codes: 0 the reply is written; 1 also a FILE that cannot be read; 2 the
command line is wrong; 3 the time was over; 4 the server died;
5 it closed; 6 no server has this name; 10 the server ended the call with an
error; `ramway --help` has the rest.

Examples:
  ramway call store --describe
  ramway call store Store.Get --data key --deadline 1s
  ramway call store 7 --data @request.bin > reply.bin
  ramway call store Store.List --stream --lines";

/// What to call.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The server's name, or its path
    name: OsString,
    /// The method's number or name; needed, but with --ping and --describe
    method: Option<String>,
    /// The request's bytes: TEXT itself, or `@FILE`, or `@-` for standard input [default: none]
    #[arg(long, value_name = "TEXT|@FILE")]
    data: Option<OsString>,
    /// The request's metadata, given as --data is [default: none]
    #[arg(long, value_name = "TEXT|@FILE")]
    meta: Option<OsString>,
    /// Cancel the call when it takes longer; 500ms, 10s, 1m [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    deadline: Option<Duration>,
    /// How long to wait for the server
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    timeout: Duration,
    /// The reply is a stream
    #[arg(long)]
    stream: bool,
    /// How many elements of the stream may be under way
    #[arg(long, value_name = "N", default_value = "16", requires = "stream", value_parser = clap::value_parser!(u32).range(1..))]
    window: u32,
    /// Write a newline after the reply, or after each element
    #[arg(long)]
    lines: bool,
    /// Call no method: ask the server for an answer, and say how long it took
    #[arg(long, conflicts_with_all = ["method", "data", "meta", "stream", "lines", "describe"])]
    ping: bool,
    /// Call no method: list the server's methods, a number and a name a line
    #[arg(long, conflicts_with_all = ["method", "data", "meta", "stream", "lines"])]
    describe: bool,
    /// A user whose server will do, besides our own; may be given several times
    #[arg(long, value_name = "UID")]
    allow_uid: Vec<u32>,
}

/// Calls it.
pub fn run(args: &Args) -> Outcome {
    // What can be wrong here is said before anything is sent; and a signal still ends a read of standard input.
    let method = match &args.method {
        Some(text) => parse_method(text)?,
        None if args.ping || args.describe => 0,
        None => {
            let name = args.name.to_string_lossy();
            let text =
                format!("which method? Expected a number or a name after `{name}`; --describe lists the server's");
            return Err(Failure::new(failure::USAGE, text));
        }
    };
    if [&args.data, &args.meta].iter().all(|given| given.as_ref().is_some_and(|given| given == "@-")) {
        let text = "--data and --meta cannot both be standard input: give one of them as TEXT or @FILE";
        return Err(Failure::new(failure::USAGE, text));
    }
    let (data, meta) = (bytes(args.data.as_ref())?, bytes(args.meta.as_ref())?);
    let interrupt = Interrupt::install()?;
    let mut call = Call { client: connect(args, &interrupt)?, name: args.name.to_string_lossy().into(), interrupt };
    let mut options = CallOptions::new().meta(&meta).window(args.window);
    if let Some(limit) = args.deadline {
        options = options.timeout(limit);
    }
    // Of what waits without a look at the signal now and then.
    call.client.set_interruptible(true);
    if args.ping {
        return call.ping(&options);
    }
    if args.describe {
        return call.describe(&options);
    }
    if args.stream {
        let stream = call.client.stream_with(method, &data, &options);
        return call.elements(stream, args.lines);
    }
    let pending = call.client.start_with(method, &data, &options);
    let reply = call.wait(pending)?;
    let mut out = Out::new(args.lines);
    out.write(reply.body())?;
    out.finish()
}

fn connect(args: &Args, interrupt: &Interrupt) -> Outcome<Client> {
    let connector = Client::connector(&args.name).allow_uids(&args.allow_uid).timeout(args.timeout);
    connector.connect_while(|| interrupt.check().is_ok()).map_err(|error| match interrupt.check() {
        Err(interrupted) => interrupted,
        Ok(()) => Failure::of_options(&error, &["allow_uids"]),
    })
}

struct Call {
    client: Client,
    name: String,
    interrupt: Interrupt,
}

impl Call {
    fn wait(&mut self, pending: CallResult<Pending>) -> Outcome<Reply> {
        let mut pending = pending.map_err(|error| self.failed(&error))?;
        loop {
            match pending.wait_timeout(&mut self.client, SLICE) {
                Poll::Ready(outcome) => return outcome.map_err(|error| self.failed(&error)),
                Poll::Pending => {
                    if let Err(interrupted) = self.interrupt.check() {
                        pending.cancel(&mut self.client);
                        return Err(interrupted);
                    }
                }
            }
        }
    }

    fn elements(&mut self, stream: CallResult<Stream>, lines: bool) -> Outcome {
        let mut stream = stream.map_err(|error| self.failed(&error))?;
        let mut out = Out::new(lines);
        let outcome = loop {
            match stream.next_timeout(&mut self.client, SLICE) {
                Poll::Ready(Some(Ok(element))) => out.write(element.body())?,
                Poll::Ready(Some(Err(error))) => break Err(self.failed(&error)),
                Poll::Ready(None) => break Ok(()),
                Poll::Pending => {
                    if let Err(interrupted) = self.interrupt.check() {
                        stream.cancel(&mut self.client);
                        break Err(interrupted);
                    }
                }
            }
        };
        out.finish().and(outcome)
    }

    fn ping(&mut self, options: &CallOptions<'_>) -> Outcome {
        let begun = Instant::now();
        self.client.ping_with(options).map_err(|error| self.failed(&error))?;
        let pid = self.client.peer_pid().map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
        output::print(&format!("`{}` (process {pid}) answered in {}\n", self.name, short(begun.elapsed())))
    }

    fn describe(&mut self, options: &CallOptions<'_>) -> Outcome {
        let methods = self.client.describe_with(options).map_err(|error| self.failed(&error))?;
        let line = |method: &ramway::rpc::MethodInfo| match &method.name {
            Some(name) => format!("{} {}\n", method.number, output::printable(name)),
            None => format!("{}\n", method.number),
        };
        if methods.is_empty() {
            output::note(&format!("`{}` lists no method; it may serve any number", self.name));
        }
        output::print(&methods.iter().map(line).collect::<String>())
    }

    fn failed(&self, error: &CallError) -> Failure {
        if let (Some(ErrorKind::Interrupted), Err(interrupted)) = (error.kind(), self.interrupt.check()) {
            return interrupted;
        }
        let ran = match error.status() {
            Some(Status::Application | Status::HandlerFailed) => "",
            // This command cancels only where it is interrupted.
            Some(Status::Cancelled) => " by the server, which ends; the call may have been run",
            _ if error.may_have_run() => "; the call may have been run",
            _ => "; the call was not run",
        };
        let code = match (error.status(), error.kind()) {
            (Some(Status::TimedOut), _) => failure::TIMED_OUT,
            (Some(_), _) => failure::CALL_FAILED,
            (None, Some(kind)) => failure::code_of(kind),
            (None, None) => failure::ERROR,
        };
        Failure::new(code, format!("`{}`: {error}{ran}", self.name))
    }
}

/// Standard output, which a terminal is treated apart: it would act on what is no text.
struct Out {
    out: StdoutLock<'static>,
    lines: bool,
    terminal: bool,
    /// Whether the terminal's cursor is where a line begins.
    at_start: bool,
    /// Whether something was not shown as it is.
    escaped: bool,
}

impl Out {
    fn new(lines: bool) -> Self {
        let out = io::stdout().lock();
        Self { terminal: out.is_terminal(), out, lines, at_start: true, escaped: false }
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome {
        if self.terminal {
            let shown = output::printable(&String::from_utf8_lossy(bytes));
            self.escaped |= shown.as_bytes() != bytes;
            self.put(shown.as_bytes())
        } else {
            self.put(bytes)
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Outcome {
        let end: &[u8] = if self.lines { b"\n" } else { b"" };
        if let Some(last) = bytes.iter().chain(end).last() {
            self.at_start = *last == b'\n';
        }
        self.out
            .write_all(bytes)
            .and_then(|()| self.out.write_all(end))
            .and_then(|()| self.out.flush())
            .map_err(|error| output::failure(&error))
    }

    /// Leaves the terminal at the beginning of a line.
    fn finish(mut self) -> Outcome {
        if self.terminal && !self.at_start {
            self.lines = false;
            self.put(b"\n")?;
        }
        if self.escaped {
            output::note("what is no text is shown as escapes; `> FILE` writes the bytes as they are");
        }
        Ok(())
    }
}

/// A number, or a name whose number is made from it.
pub fn parse_method(text: &str) -> Outcome<u32> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = match digits {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        None if text.is_empty() || text.chars().any(char::is_control) => None,
        None => return Ok(method_id(text)),
    };
    number.ok_or_else(|| {
        let text =
            format!("`{}` is no method: expected a number from 0 to 0xffffffff or a name", output::printable(text));
        Failure::new(failure::USAGE, text)
    })
}

/// What `--data` and `--meta` stand for.
fn bytes(given: Option<&OsString>) -> Outcome<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let Some(given) = given else { return Ok(Vec::new()) };
    let Some(path) = given.as_bytes().strip_prefix(b"@") else { return Ok(given.as_bytes().to_vec()) };
    if path == b"-" {
        standard::input()?;
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(|error| Failure::io(&error, "reading standard input"))?;
        return Ok(bytes);
    }
    if path.is_empty() {
        let text = "`@` names no file: expected @FILE, or @- for standard input";
        return Err(Failure::new(failure::USAGE, text));
    }
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    standard::input_at(path)?;
    // Not `Failure::io`, whose code for what is not there would say that there is no server.
    std::fs::read(path).map_err(|error| Failure::error(format!("cannot read {}: {error}", path.display())))
}
