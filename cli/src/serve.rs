//! `ramway serve`: an RPC server whose methods are a command.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ramway::ErrorKind;
use ramway::rpc::{AnyMethod, Fault, Request, Server};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::call::parse_method;
use crate::failure::{self, Failure, Outcome};
use crate::interrupt::{Interrupt, SLICE};
use crate::output;
use crate::units::{parse_duration, parse_mode, parse_some_size, size};

/// What is kept of a command's standard error, for the caller.
const ERROR_TEXT: u64 = 4096;

const NOTES: &str = "\
Serves calls at NAME by a command, for trials: each call runs CMD by `sh -c`,
with the request's bytes as its standard input; its standard output is the
reply. The status 0 is a reply; any other one is an error of the application
with this number, whose text is what CMD has written on standard error. A call
that is cancelled, or whose time is over, kills the command and what it has
started in its process group.

The command finds in its environment: RAMWAY_METHOD (a number),
RAMWAY_PEER_UID, RAMWAY_PEER_PID (empty if unknown), RAMWAY_TIMEOUT_MS (what the
call has left; empty without a limit), RAMWAY_META_HEX (the metadata).

Every method is served, or those that --method names. With --stream each line
of the output is an element of a stream; a caller that wants one reply is then
refused. Ctrl-C ends the server: calls that run have the time of --drain.

Examples:
  ramway serve upper --exec 'tr a-z A-Z' &
  ramway call upper 1 --data 'hello'
  ramway serve clock --stream --exec 'while date; do sleep 1; done'
  ramway call clock 1 --stream";

/// What to serve.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The name to serve at, or a path
    name: OsString,
    /// The command that a call runs, by `sh -c`
    #[arg(long, value_name = "CMD")]
    exec: OsString,
    /// Serve only this method, a number or a name; may be given several times [default: every method]
    #[arg(long, value_name = "METHOD")]
    method: Vec<String>,
    /// Each line of the output is an element of a stream, without its newline
    #[arg(long)]
    stream: bool,
    /// How many commands run at a time [default: as many as there are processors, at least 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Bytes of both rings of every client; 64K, 1M. Requests and replies are at most 32 bytes shorter
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = parse_some_size)]
    capacity: u64,
    /// How many clients there may be at a time
    #[arg(long, value_name = "N", default_value = "128", value_parser = clap::value_parser!(u32).range(1..))]
    max_clients: u32,
    /// How many calls a client may have in flight
    #[arg(long, value_name = "N", default_value = "1024", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    max_in_flight: u32,
    /// How long calls that run may go on when the server ends
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    drain: Duration,
    /// The socket's permission bits, in octal [default: 600, with --allow-uid 666]
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    mode: Option<u32>,
    /// A user who may connect, besides our own; may be given several times
    #[arg(long, value_name = "UID")]
    allow_uid: Vec<u32>,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Serves it.
pub fn run(args: &Args) -> Outcome {
    if args.exec.is_empty() {
        let text = "--exec is empty: expected the command that a call runs; `cat` replies with the request";
        return Err(Failure::new(failure::USAGE, text));
    }
    let methods = args.method.iter().map(|text| parse_method(text)).collect::<Outcome<Vec<u32>>>()?;
    let interrupt = Interrupt::install()?;
    let mut server = bind(args).map_err(|error| Failure::of_options(&error, &["allow_uids", "capacity"]))?;
    let command = Arc::new(Exec { command: args.exec.clone(), longest: args.capacity });
    if methods.is_empty() {
        add(&mut server, AnyMethod, args.stream, &command)?;
    }
    for (number, text) in methods.iter().zip(&args.method) {
        // A name is said to those who ask for the methods.
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            add(&mut server, *number, args.stream, &command)?;
        } else {
            add(&mut server, text.as_str(), args.stream, &command)?;
        }
    }
    if !args.quiet {
        output::note(&format!("serving at {}; Ctrl-C ends it", server.path().display()));
    }
    loop {
        match server.run_timeout(SLICE) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::TimedOut => {}
            Err(error) => return Err(error.into()),
        }
        if let Err(interrupted) = interrupt.check() {
            server.shutdown(args.drain)?;
            return Err(interrupted);
        }
    }
}

fn bind(args: &Args) -> ramway::Result<Server> {
    let mut builder = Server::builder(&args.name)
        .capacity(args.capacity)
        .max_clients(args.max_clients as usize)
        .max_in_flight(args.max_in_flight)
        .allow_uids(&args.allow_uid);
    if let Some(jobs) = args.jobs {
        builder = builder.threads(jobs.into());
    }
    if let Some(mode) = args.mode {
        builder = builder.mode(mode);
    }
    builder.bind()
}

fn add(server: &mut Server, key: impl ramway::rpc::MethodKey, stream: bool, exec: &Arc<Exec>) -> ramway::Result<()> {
    let exec = Arc::clone(exec);
    if stream {
        server.pool_stream(key, move |request| exec.lines(request))
    } else {
        server.pool(key, move |request| exec.reply(request))
    }
}

/// The command that calls run.
struct Exec {
    command: OsString,
    /// No reply is longer, in bytes: what a command writes beyond is not kept.
    longest: u64,
}

impl Exec {
    /// Its whole output.
    fn reply(&self, request: &Request<'_>) -> Result<Vec<u8>, Fault> {
        let mut running = Running::start(&self.command, request)?;
        let mut reply = Vec::new();
        // One byte more: such a reply is refused as too large, and not cut off.
        let read = running.output.by_ref().take(self.longest + 1).read_to_end(&mut reply);
        if reply.len() as u64 > self.longest {
            running.kill();
        }
        let outcome = running.finish();
        read.map_err(|error| Fault::new(1, format!("reading the command's output: {error}")))?;
        if reply.len() as u64 > self.longest { Ok(reply) } else { outcome.map(|()| reply) }
    }

    /// Its output, line by line, as it comes.
    fn lines(&self, request: &Request<'_>) -> Result<Lines, Fault> {
        Running::start(&self.command, request).map(|running| Lines { running: Some(running), longest: self.longest })
    }
}

/// A command at work. Dropping it kills it.
struct Running {
    output: BufReader<ChildStdout>,
    /// `None` once it was waited for: then its number may be another's.
    child: Arc<Mutex<Option<Child>>>,
    pid: Pid,
    errors: Option<thread::JoinHandle<Vec<u8>>>,
}

impl Running {
    fn start(command: &OsString, request: &Request<'_>) -> Result<Self, Fault> {
        let peer = request.peer();
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(command)
            .env("RAMWAY_METHOD", request.method().to_string())
            .env("RAMWAY_PEER_UID", peer.uid.to_string())
            .env("RAMWAY_PEER_PID", peer.pid.map(|pid| pid.to_string()).unwrap_or_default())
            .env("RAMWAY_TIMEOUT_MS", request.remaining().map(|left| left.as_millis().to_string()).unwrap_or_default())
            .env("RAMWAY_META_HEX", request.meta().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| Fault::new(1, format!("starting the command: {error}")))?;
        let pid = Pid::from_child(&child);
        let input = child.stdin.take().expect("it is a pipe");
        let output = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let stderr = child.stderr.take().expect("it is a pipe");
        feed(input, request.body().to_vec());
        let errors = thread::spawn(move || {
            let (mut text, mut stderr) = (Vec::new(), stderr);
            // What is beyond is read too, so that the command is not held up.
            let _ = stderr.by_ref().take(ERROR_TEXT).read_to_end(&mut text);
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            text
        });
        let child = Arc::new(Mutex::new(Some(child)));
        let running = Self { output, child: Arc::clone(&child), pid, errors: Some(errors) };
        request.cancellation().on_cancel(move || kill(&child));
        Ok(running)
    }

    fn kill(&self) {
        kill(&self.child);
    }

    /// Waits for its end.
    fn finish(&mut self) -> Result<(), Fault> {
        // Without taking it off the table: until then its number is its own, and it can be killed.
        let waited = loop {
            match waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(rustix::io::Errno::INTR) => {}
                waited => break waited,
            }
        };
        let status = lock(&self.child).take().map(|mut child| child.wait());
        let text = self.errors.take().map(|errors| errors.join().unwrap_or_default()).unwrap_or_default();
        waited.map_err(|error| Fault::new(1, format!("waiting for the command: {error}")))?;
        match status {
            Some(Ok(status)) => outcome(status, &text),
            Some(Err(error)) => Err(Fault::new(1, format!("waiting for the command: {error}"))),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = self.finish();
    }
}

fn lock(child: &Mutex<Option<Child>>) -> std::sync::MutexGuard<'_, Option<Child>> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill(child: &Mutex<Option<Child>>) {
    if let Some(child) = &*lock(child) {
        // It may have ended, which changes nothing: it was not waited for yet.
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
}

/// Writes the request beside reading the reply: a command may answer before it has read everything, or read nothing at all.
fn feed(mut input: ChildStdin, body: Vec<u8>) {
    // A pipe takes this much at once.
    if body.len() <= 4096 {
        let _ = input.write_all(&body);
    } else {
        thread::spawn(move || drop(input.write_all(&body)));
    }
}

/// What the command's status says.
fn outcome(status: ExitStatus, errors: &[u8]) -> Result<(), Fault> {
    let (code, end) = match (status.code(), status.signal()) {
        (Some(0), _) => return Ok(()),
        (Some(code), _) => (code as u32, format!("the command ended with status {code}")),
        (None, signal) => {
            let signal = signal.unwrap_or_default();
            (128 + signal as u32, format!("the command was killed by signal {signal}"))
        }
    };
    let text = String::from_utf8_lossy(errors);
    let text = text.trim_end();
    Err(Fault::new(code, if text.is_empty() { end } else { text.to_owned() }))
}

/// The output's lines.
struct Lines {
    /// `None` after the last one.
    running: Option<Running>,
    longest: u64,
}

impl Iterator for Lines {
    type Item = Result<Vec<u8>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let running = self.running.as_mut()?;
        let mut line = Vec::new();
        let read = running.output.by_ref().take(self.longest + 1).read_until(b'\n', &mut line);
        match read {
            Ok(0) => {
                let ended = running.finish();
                self.running = None;
                ended.err().map(Err)
            }
            Ok(_) if line.len() as u64 > self.longest => {
                self.running = None;
                let text = format!("a line of the command is longer than a reply can be ({})", size(self.longest));
                Some(Err(Fault::new(1, text)))
            }
            Ok(_) => {
                line.pop_if(|last| *last == b'\n');
                Some(Ok(line))
            }
            Err(error) => {
                self.running = None;
                Some(Err(Fault::new(1, format!("reading the command's output: {error}"))))
            }
        }
    }
}
