//! An agent as a child: started, told things, listened to, killed by its own process id, and never left behind.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, set_parent_process_death_signal, waitid};

use crate::{Event, Result};

/// What passes between a runner and an agent, for a log.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// A command.
    Told(&'a str),
    /// An event.
    Event(&'a str),
    /// A line on standard error.
    Aside(&'a str),
}

/// What came of listening.
#[derive(Debug)]
pub enum Heard {
    /// A line.
    Event(Event),
    /// Its output ended.
    Ended,
    /// Nothing, until the deadline.
    Silence,
}

/// A running agent. Killed and waited for when dropped.
pub struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    events: mpsc::Receiver<Event>,
    /// One that a check without waiting has found.
    next: Option<Event>,
    log: Box<dyn Fn(Said<'_>) + Send>,
    ended: Option<ExitStatus>,
}

impl Agent {
    /// Starts it. It is killed if the thread that started it ends before it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(mut command: Command, log: impl Fn(Said<'_>) + Clone + Send + 'static) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: one system call, async-signal-safe, no allocation.
        unsafe { command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?)) };
        let mut child = command.spawn().map_err(|cause| format!("{:?}: {cause}", command.get_program()))?;
        let (sender, events) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            let log = log.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
                    let event = Event::parse(&line);
                    log(Said::Event(&line));
                    // No receiver: the agent is about to be killed.
                    let _ = sender.send(event);
                }
            });
        }
        if let Some(output) = child.stderr.take() {
            let log = log.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
                    log(Said::Aside(&line));
                }
            });
        }
        let input = child.stdin.take();
        Ok(Self { child, input, events, next: None, log: Box::new(log), ended: None })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives it a command.
    ///
    /// # Errors
    /// It does not read any more.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        (self.log)(Said::Told(line));
        let input = self.input.as_mut().ok_or("its standard input is closed")?;
        // In one write, so that no half of a command is ever there.
        Ok(input.write_all(format!("{line}\n").as_bytes())?)
    }

    /// The next event.
    pub fn hear(&mut self, deadline: Instant) -> Heard {
        if let Some(event) = self.next.take() {
            return Heard::Event(event);
        }
        match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(event) => Heard::Event(event),
            Err(RecvTimeoutError::Disconnected) => Heard::Ended,
            Err(RecvTimeoutError::Timeout) => Heard::Silence,
        }
    }

    /// Whether it has said something or ended already, without waiting.
    pub fn any(&mut self) -> bool {
        if self.next.is_none() {
            match self.events.try_recv() {
                Ok(event) => self.next = Some(event),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => {}
            }
        }
        true
    }

    /// The next event of this word; `at` lines before it are passed over.
    ///
    /// # Errors
    /// Another event comes first, or the agent ends, or the time is over.
    pub fn expect(&mut self, word: &str, deadline: Instant) -> Result<Event> {
        loop {
            match self.hear(deadline) {
                Heard::Event(event) if event.word == word => return Ok(event),
                Heard::Event(event) if event.word == "at" => {}
                Heard::Event(event) => return Err(format!("`{}` where `{word}` was expected", event.line).into()),
                Heard::Ended => return Err(format!("ended without `{word}`").into()),
                Heard::Silence => return Err(format!("no `{word}` in time").into()),
            }
        }
    }

    /// Gives it a command that is answered by one event of this word.
    ///
    /// # Errors
    /// As for [`tell`](Self::tell) and [`expect`](Self::expect).
    pub fn ask(&mut self, command: &str, word: &str, deadline: Instant) -> Result<Event> {
        self.tell(command)?;
        self.expect(word, deadline)
    }

    /// Has it close what is open and end by itself.
    ///
    /// # Errors
    /// It says something else than `closed`, or ends otherwise, or not in time.
    pub fn finish(&mut self, deadline: Instant) -> Result<()> {
        self.tell("close")?;
        self.expect("closed", deadline)?;
        self.input = None;
        match self.hear(deadline) {
            Heard::Ended => {}
            Heard::Event(event) => return Err(format!("`{}` after `closed`", event.line).into()),
            Heard::Silence => return Err("did not end in time".into()),
        }
        let status = self.wait(deadline)?;
        if status.success() { Ok(()) } else { Err(status.to_string().into()) }
    }

    /// Kills it; gives what it had said by then, and when it was gone.
    ///
    /// # Errors
    /// It had ended by itself before.
    pub fn kill(&mut self, deadline: Instant) -> Result<(Vec<Event>, Instant)> {
        // Fails only if it has ended, which the status tells.
        let _ = self.child.kill();
        let status = self.wait(deadline)?;
        let gone = Instant::now();
        if status.signal() != Some(Signal::KILL.as_raw()) {
            return Err(format!("{status} before it was killed").into());
        }
        let mut said = Vec::new();
        loop {
            match self.hear(deadline) {
                Heard::Event(event) => said.push(event),
                Heard::Ended => return Ok((said, gone)),
                Heard::Silence => return Err("its output did not end in time".into()),
            }
        }
    }

    /// Stops it (SIGSTOP), and waits until all its threads stand still: what it has not done by then it does not do.
    ///
    /// # Errors
    /// It has ended, or does not stop in time.
    pub fn stop(&mut self, deadline: Instant) -> Result<()> {
        self.signal(Signal::STOP)?;
        let status = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        while waitid(WaitId::Pid(Pid::from_child(&self.child)), status)?.is_none() {
            if Instant::now() >= deadline {
                return Err("did not stop in time".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Lets it go on after [`stop`](Self::stop).
    ///
    /// # Errors
    /// It has ended.
    pub fn go_on(&mut self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        // Its process id is its own until it is waited for.
        match self.child.try_wait()? {
            None => Ok(kill_process(Pid::from_child(&self.child), signal)?),
            Some(status) => {
                self.ended = Some(status);
                Err(format!("{status} before it was sent {signal:?}").into())
            }
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It does not end in time.
    pub fn wait(&mut self, deadline: Instant) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.ended = Some(status);
                return Ok(status);
            }
            if Instant::now() >= deadline {
                return Err("did not end in time".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // Fails only if it is gone already.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
