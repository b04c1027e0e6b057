//! A program that reads a vector: its events, one a line, and how it is let go on.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Instant;

use super::files::{Result, tried};

/// Something that can be told to `read`: a language's program, or a library in this process.
pub trait Reader: Sync {
    /// Starts it with these arguments. `dir` is a directory of its own.
    fn start(&self, arguments: &[String], dir: &Path) -> Result<Box<dyn Session>>;

    /// The largest capacity, in bytes, that it works with; a larger ring it refuses with `Unsupported`.
    fn largest_ring(&self) -> u64 {
        u64::MAX
    }
}

/// What a session has to say.
pub enum Heard {
    /// A line, which is an event.
    Line(String),
    /// Its output ended.
    Ended,
    /// Nothing, until the deadline.
    Silence,
}

/// What a reader says, line by line.
pub struct Lines {
    lines: Receiver<String>,
    /// The one that a look without waiting has found.
    next: Option<String>,
    ended: bool,
    /// The line that ends one session of several.
    last: Option<&'static str>,
}

impl Lines {
    /// The output ends when the other end of the channel goes.
    pub fn new(lines: Receiver<String>) -> Self {
        Self { lines, next: None, ended: false, last: None }
    }

    /// The next one.
    pub fn hear(&mut self, deadline: Instant) -> Heard {
        if let Some(line) = self.next.take() {
            return Heard::Line(line);
        }
        if self.ended {
            return Heard::Ended;
        }
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) if self.last == Some(&*line) => {
                self.ended = true;
                Heard::Ended
            }
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Timeout) => Heard::Silence,
            Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                Heard::Ended
            }
        }
    }

    /// Whether it has said something or ended already, without waiting. A reader that does so before it is connected has
    /// given up.
    pub fn any(&mut self) -> bool {
        if self.next.is_none() && !self.ended {
            match self.lines.try_recv() {
                Ok(line) if self.last == Some(&*line) => self.ended = true,
                Ok(line) => self.next = Some(line),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.ended = true,
            }
        }
        self.ended || self.next.is_some()
    }
}

/// A reader at work.
pub trait Session {
    /// Its events.
    fn lines(&mut self) -> &mut Lines;
    /// Lets a paused reader go on.
    fn go_on(&mut self) -> Result<()>;
    /// Waits for its end; the error says how it ended badly. It is killed at the deadline.
    fn finish(&mut self, deadline: Instant) -> Result<()>;
    /// Ends it, and gives what it said beside its events, for the report of a failure.
    fn remarks(&mut self) -> String;
}

/// A program as a session.
pub struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines,
    stderr: Receiver<String>,
    exited: bool,
}

impl Program {
    /// Starts the command, whose streams become pipes.
    pub fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = command.get_program().to_string_lossy().into_owned();
        let mut child = tried(&shown, command.spawn())?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (to_lines, lines) = channel();
        if let Some(stdout) = stdout {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
                    if to_lines.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let (to_remarks, remarks) = channel();
        if let Some(mut stderr) = stderr {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = stderr.read_to_end(&mut bytes);
                let _ = to_remarks.send(String::from_utf8_lossy(&bytes).into_owned());
            });
        }
        Ok(Self { child, stdin, lines: Lines::new(lines), stderr: remarks, exited: false })
    }
}

impl Session for Program {
    fn lines(&mut self) -> &mut Lines {
        &mut self.lines
    }

    fn go_on(&mut self) -> Result<()> {
        self.tell("go on")
    }

    fn finish(&mut self, deadline: Instant) -> Result<()> {
        use std::os::unix::process::ExitStatusExt;
        drop(self.stdin.take());
        loop {
            if let Some(status) = tried("waiting for it", self.child.try_wait())? {
                self.exited = true;
                return match status.signal() {
                    None => Ok(()),
                    Some(signal) => Err(format!("signal {signal} ended it")),
                };
            }
            if Instant::now() >= deadline {
                return Err("it does not end".into());
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn remarks(&mut self) -> String {
        self.kill();
        // The pipe ends with the program, unless something that it started has it too.
        let wait = std::time::Duration::from_millis(200);
        self.stderr.recv_timeout(wait).unwrap_or_default().trim().to_owned()
    }
}

impl Program {
    fn tell(&mut self, line: &str) -> Result<()> {
        match &mut self.stdin {
            // In one write: the first byte is enough for a program to go on, and to end.
            Some(stdin) => tried("its standard input", stdin.write_all(format!("{line}\n").as_bytes())),
            None => Ok(()),
        }
    }

    fn kill(&mut self) {
        if !self.exited {
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.exited = true;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a program that serves says after each command.
const OVER: &str = "over";

thread_local! {
    /// Programs that wait for their next command, and their languages. This thread's own: they end with the thread that
    /// started them.
    static IDLE: RefCell<Vec<(String, Program)>> = const { RefCell::new(Vec::new()) };
}

/// One command of a program that plays many, one after the other (`serve`): for languages that start slowly. One that
/// goes wrong ends it, and the next one gets another program.
pub struct Served {
    language: String,
    program: Option<Program>,
}

impl Served {
    /// Has an idle program of the language play a command, or one that `start` starts.
    pub fn start(language: &str, arguments: &[String], start: impl FnOnce() -> Result<Program>) -> Result<Self> {
        let idle = IDLE.with_borrow_mut(|idle| {
            let at = idle.iter().position(|(name, _)| name == language)?;
            Some(idle.swap_remove(at).1)
        });
        let mut program = idle.map_or_else(start, Ok)?;
        program.lines.last = Some(OVER);
        program.lines.ended = false;
        program.tell(&arguments.join(" "))?;
        Ok(Self { language: language.to_owned(), program: Some(program) })
    }

    fn program(&mut self) -> &mut Program {
        self.program.as_mut().expect("a session is not used after its end")
    }
}

impl Session for Served {
    fn lines(&mut self) -> &mut Lines {
        &mut self.program().lines
    }

    fn go_on(&mut self) -> Result<()> {
        self.program().go_on()
    }

    fn finish(&mut self, deadline: Instant) -> Result<()> {
        let program = self.program();
        if tried("waiting for it", program.child.try_wait())?.is_some() || !program.lines.ended {
            program.finish(deadline)?;
            return Err("it ended, and should go on serving".into());
        }
        if let Some(program) = self.program.take() {
            IDLE.with_borrow_mut(|idle| idle.push((self.language.clone(), program)));
        }
        Ok(())
    }

    fn remarks(&mut self) -> String {
        self.program.as_mut().map(Program::remarks).unwrap_or_default()
    }
}
