//! A candidate's two processes as the run sees them: lines there and back, and an end in any case.

use crate::case::Burst;
use crate::channel::Setup;
use crate::place::{self, Directory};
use crate::worker::{Answer, Ask, Lead, Order, Outcome, PROTOCOL, VARIABLE, die_with};
use crate::{Result, clock};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What all pairs of a run have in common.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    pub(crate) cpus: [Option<usize>; 2],
    pub(crate) realtime: bool,
    /// How long a pair may take beyond what is expected.
    pub(crate) wait_max: Duration,
}

/// A leading process and all that hangs on it.
pub(crate) struct Pair {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines,
    /// What both processes wrote to their standard error.
    said: File,
    wait_max: Duration,
    /// The leading process, the following one, and others that work for the mechanism.
    pub(crate) pids: Vec<u32>,
    _directories: [Directory; 2],
}

impl Pair {
    /// Starts both processes and has them open the mechanism; `None` if it cannot do this burst.
    pub(crate) fn start(
        command: &[PathBuf],
        mechanism: &str,
        capacity: u64,
        burst: &Burst,
        conditions: &Conditions,
    ) -> Result<Option<Self>> {
        let directories = [Directory::new(&place::memory())?, Directory::new(&place::disk())?];
        let setup = Setup {
            directory: directories[0].path().to_owned(),
            disk: directories[1].path().to_owned(),
            capacity,
            largest: burst.size,
            cpus: conditions.cpus,
            realtime: conditions.realtime,
        };
        let order = Order::Lead(Lead {
            protocol: PROTOCOL,
            mechanism: mechanism.to_owned(),
            setup,
            burst: *burst,
            ps_per_tick: clock::rate(),
        });
        let said = scratch_file()?;
        let mut child = spawn(command, &serde_json::to_string(&order)?, &said)?;
        let (input, output) = (child.stdin.take(), child.stdout.take().ok_or("no standard output")?);
        let mut pair = Self {
            child,
            input,
            output: Lines { from: output, read: Vec::new(), noise: String::new() },
            said,
            wait_max: conditions.wait_max,
            pids: Vec::new(),
            _directories: directories,
        };
        match pair.answer(Duration::ZERO)? {
            Answer::Ready(ready) => pair.pids = ready.pids,
            Answer::Cannot(()) => return Ok(None),
            other => return Err(unexpected(&other)),
        }
        Ok(Some(pair))
    }

    /// One burst that is expected to take this long.
    pub(crate) fn burst(&mut self, burst: &Burst, expected: Duration) -> Result<Outcome> {
        self.ask(&Ask::Burst(*burst))?;
        match self.answer(expected)? {
            Answer::Outcome(outcome) => Ok(outcome),
            other => Err(unexpected(&other)),
        }
    }

    fn ask(&mut self, ask: &Ask) -> Result<()> {
        let line = format!("{}\n", serde_json::to_string(ask)?);
        let input = self.input.as_mut().ok_or("the worker's input is closed")?;
        match input.write_all(line.as_bytes()) {
            // Why it is gone is what it said last.
            Err(cause) if cause.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }

    fn answer(&mut self, expected: Duration) -> Result<Answer> {
        let wait_max = self.wait_max + expected;
        match self.output.next(Instant::now() + wait_max) {
            Ok(Some(line)) => match serde_json::from_str(&line) {
                Ok(Answer::Failed(why)) => {
                    // The process that caused it may be about to say why.
                    self.wait_for(Duration::from_millis(200));
                    Err(self.with_last_words(why))
                }
                Ok(answer) => Ok(answer),
                Err(cause) => Err(format!("the worker said {:?}: {cause}", shortened(&line)).into()),
            },
            Ok(None) => {
                let ended = match self.wait_for(Duration::from_secs(2)) {
                    Some(status) => format!("the worker ended with {status}"),
                    None => "the worker closed its output".to_owned(),
                };
                Err(self.with_last_words(ended))
            }
            Err(cause) if cause.kind() == ErrorKind::TimedOut => {
                Err(self.with_last_words(format!("hangs: no answer within {} s", wait_max.as_secs())))
            }
            Err(cause) => Err(cause.into()),
        }
    }

    fn wait_for(&self, wait_max: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            let status = self.status();
            if status.is_some() || began.elapsed() >= wait_max {
                return status;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// How the leading process ended, if it has. It stays to be reaped: until then nobody else can have its group's number.
    fn status(&self) -> Option<ExitStatus> {
        // SAFETY: waitid fills in the zeroed struct, whose fields are valid for a child's end.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            if libc::waitid(libc::P_PID, self.child.id(), &mut info, flags) != 0 || info.si_pid() == 0 {
                return None;
            }
            let exited = info.si_code == libc::CLD_EXITED;
            Some(ExitStatus::from_raw(if exited { info.si_status() << 8 } else { info.si_status() }))
        }
    }

    fn with_last_words(&self, why: String) -> crate::Failure {
        let mut text = vec![0; 64 << 10];
        let len = self.said.metadata().map_or(0, |about| about.len());
        let from = len.saturating_sub(text.len() as u64);
        let got = self.said.read_at(&mut text, from).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..got]);
        let last = last_words(&text).or(Some(self.output.noise.as_str()).filter(|noise| !noise.is_empty()));
        match last {
            Some(last) if !why.contains(last) => format!("{why}: {}", shortened(last)).into(),
            _ => why.into(),
        }
    }

    /// Ends both processes in an orderly way.
    pub(crate) fn stop(mut self) -> Result<()> {
        // A worker that is gone already says so by its status.
        let _ = self.ask(&Ask::Quit(()));
        self.input = None;
        match self.wait_for(self.wait_max) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.with_last_words(format!("the worker ended with {status}"))),
            None => Err(self.with_last_words("the worker does not end".into())),
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: a signal to the group that this child leads. It is not reaped yet, so the number is still its own.
        unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

/// What a process that ended said last: the message of a panic, else its last line.
fn last_words(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let panic = lines.clone().skip_while(|line| !line.contains(" panicked at ")).nth(1);
    panic.or_else(|| lines.rfind(|line| !line.starts_with("note: ")))
}

fn unexpected(answer: &Answer) -> crate::Failure {
    let text = serde_json::to_string(answer).unwrap_or_default();
    format!("the worker said {:?} out of turn", shortened(&text)).into()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A file without a name.
fn scratch_file() -> Result<File> {
    // SAFETY: makes a descriptor, which is then owned here.
    unsafe {
        match libc::memfd_create(c"ramway-bench-stderr".as_ptr(), libc::MFD_CLOEXEC) {
            fd if fd < 0 => Err(Error::last_os_error().into()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}

fn spawn(command: &[PathBuf], order: &str, said: &File) -> Result<Child> {
    let [program, arguments @ ..] = command else { return Err("its command is empty".into()) };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env(VARIABLE, order)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::from(said.try_clone()?))
        // Its own, so that all of it can be ended together, and so that Ctrl-C comes here first.
        .process_group(0);
    let parent = std::process::id();
    // SAFETY: calls only async-signal-safe functions and allocates nothing.
    unsafe { command.pre_exec(move || die_with(parent)) };
    command.spawn().map_err(|cause| format!("{}: {cause}", program.display()).into())
}

/// Lines of a process, with a deadline.
struct Lines {
    from: ChildStdout,
    /// Read and not yet handed out.
    read: Vec<u8>,
    /// The last line that was not meant for us.
    noise: String,
}

impl Lines {
    /// The next line that begins with a brace; `None` at the end.
    fn next(&mut self, deadline: Instant) -> std::io::Result<Option<String>> {
        loop {
            while let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if line.starts_with('{') {
                    return Ok(Some(line));
                }
                if !line.is_empty() {
                    self.noise = line;
                }
            }
            if self.read.len() > LINE_MAX {
                return Err(Error::other("the worker said a line without end"));
            }
            let mut poll = libc::pollfd { fd: self.from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            // SAFETY: one struct, as it says.
            let ready = unsafe { libc::poll(&mut poll, 1, left.as_millis().clamp(1, 60_000) as i32) };
            if ready < 0 && Error::last_os_error().kind() != ErrorKind::Interrupted {
                return Err(Error::last_os_error());
            }
            if ready <= 0 {
                continue;
            }
            let mut chunk = [0; 16 << 10];
            match self.from.read(&mut chunk)? {
                0 => return Ok(None),
                got => self.read.extend_from_slice(&chunk[..got]),
            }
        }
    }
}

/// Far beyond any outcome.
const LINE_MAX: usize = 64 << 20;
