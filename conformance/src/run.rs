//! Programs as children: started, listened to, told things, killed by their own process id, and never left behind.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::folder::Folder;
use crate::languages::{Language, Result};

/// One line of a program: a word and what it says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub word: String,
    fields: Vec<(String, String)>,
    /// When the line was read.
    pub at: Instant,
}

impl Event {
    /// Takes `word key=value key=value ...` apart. `text=` takes everything to the end of the line; a word without `=`
    /// is a key with an empty value.
    pub fn parse(line: &str) -> Self {
        let (word, mut rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut fields = Vec::new();
        while !rest.is_empty() {
            if let Some(text) = rest.strip_prefix("text=") {
                fields.push(("text".to_owned(), text.to_owned()));
                break;
            }
            let (field, more) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = more;
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            if !key.is_empty() {
                fields.push((key.to_owned(), value.to_owned()));
            }
        }
        Self { word: word.to_owned(), fields, at: Instant::now() }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The value of a key that must be there, as a number.
    ///
    /// # Errors
    /// It is missing, or no number.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T> {
        let value = self.get(key).ok_or_else(|| format!("`{}` without {key}=", self.word))?;
        value.parse().map_err(|_| format!("`{}` with {key}={value}, which is no number", self.word).into())
    }

    /// Compares values with what they must be, written as `key=value key=value`.
    ///
    /// # Errors
    /// One of them differs.
    pub fn expect(&self, fields: &str) -> Result<&Self> {
        for field in fields.split_whitespace() {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            match self.get(key) {
                Some(found) if found == value => {}
                found => {
                    let found = found.unwrap_or("nothing");
                    return Err(format!("`{}` says {key}={found} where {value} was expected", self.word).into());
                }
            }
        }
        Ok(self)
    }
}

/// A directory of its own in memory for named segments, what happened in it, and until when.
pub struct Scene {
    directory: Folder,
    began: Instant,
    deadline: Instant,
    log: Arc<Mutex<Vec<String>>>,
}

/// How much of a log is kept at its beginning and at its end.
const LOG_LINES: usize = 40;

impl Scene {
    /// An empty directory; whatever is done here must be over after `limit`.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn new(limit: Duration) -> Result<Self> {
        let began = Instant::now();
        Ok(Self { directory: Folder::new()?, began, deadline: began + limit, log: Arc::default() })
    }

    /// Where its names stand.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What is left of its time.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Starts a language's program with `flags` (blank-separated, the command first), as `role` in logs.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, language: &Language, role: &str, flags: &str) -> Result<Program> {
        self.start_as(language, language.command(), role, flags)
    }

    /// The same, as a language's program is started to be measured.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_measured(&self, language: &Language, role: &str, flags: &str) -> Result<Program> {
        self.start_as(language, language.speed_command(), role, flags)
    }

    fn start_as(&self, language: &Language, mut command: Command, role: &str, flags: &str) -> Result<Program> {
        let label = format!("{} {role}", language.name);
        command
            .args(flags.split_whitespace())
            .env("RAMWAY_DIR", self.directory())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.note(&label, flags);
        let mut child = command.spawn().map_err(|cause| format!("{label}: {:?}: {cause}", command.get_program()))?;
        let (sender, events) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            let (log, label, began) = (self.log.clone(), label.clone(), self.began);
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
                    add(&log, began, &label, &line);
                    // A program that nobody listens to any more is about to be killed.
                    let _ = sender.send(Event::parse(&line));
                }
            });
        }
        if let Some(output) = child.stderr.take() {
            let (log, label, began) = (self.log.clone(), label.clone(), self.began);
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
                    add(&log, began, &label, &format!("stderr: {line}"));
                }
            });
        }
        let input = child.stdin.take();
        Ok(Program { child, label, input, events, deadline: self.deadline, ended: None })
    }

    /// Adds a line of the runner's own to the log.
    pub fn note(&self, label: &str, line: &str) {
        add(&self.log, self.began, label, line);
    }

    /// What all programs said, in the order in which it was read; the middle of a long log is left out.
    pub fn log(&self) -> Vec<String> {
        let log = lock(&self.log);
        if log.len() <= 2 * LOG_LINES {
            return log.clone();
        }
        let mut kept = log[..LOG_LINES].to_vec();
        kept.push(format!("... {} lines", log.len() - 2 * LOG_LINES));
        kept.extend_from_slice(&log[log.len() - LOG_LINES..]);
        kept
    }

    /// The names that are left in the directory.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn names(&self) -> Result<Vec<PathBuf>> {
        std::fs::read_dir(self.directory())?.map(|entry| Ok(entry?.file_name().into())).collect()
    }
}

fn lock(log: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    // A list of lines is whole whoever panicked.
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add(log: &Mutex<Vec<String>>, began: Instant, label: &str, line: &str) {
    let entry = format!("{:8.3} {label}: {line}", began.elapsed().as_secs_f64());
    let mut log = lock(log);
    // Of a row of `at` lines only the last says anything; two programs may take turns.
    if line.starts_with("at ") {
        let same = format!(" {label}: at ");
        if let Some(last) = log.iter_mut().rev().take(2).find(|last| last.contains(&same)) {
            *last = entry;
            return;
        }
    }
    log.push(entry);
}

/// A running program. Killed and waited for when dropped.
pub struct Program {
    child: Child,
    label: String,
    input: Option<ChildStdin>,
    events: mpsc::Receiver<Event>,
    deadline: Instant,
    ended: Option<ExitStatus>,
}

impl Program {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line, whatever it is; `None` when there will be no more.
    ///
    /// # Errors
    /// None came in time.
    pub fn event(&mut self) -> Result<Option<Event>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.events.recv_timeout(left) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(format!("{}: said nothing more in time", self.label).into()),
        }
    }

    /// A line that is there already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// The next event of this word; `at` lines before it are passed over.
    ///
    /// # Errors
    /// Another event comes first, or the program ends, or the time is over.
    pub fn expect(&mut self, word: &str) -> Result<Event> {
        loop {
            match self.event()? {
                Some(event) if event.word == word => return Ok(event),
                Some(event) if event.word == "at" => {}
                Some(event) => {
                    let said = event.get("text").or(event.get("name")).unwrap_or_default();
                    return Err(format!("{}: `{} {said}` where `{word}` was expected", self.label, event.word).into());
                }
                None => return Err(format!("{}: ended without `{word}`", self.label).into()),
            }
        }
    }

    /// A line on its standard input; an empty one ends `--linger`.
    ///
    /// # Errors
    /// It does not read any more.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().ok_or("standard input is closed")?;
        writeln!(input, "{line}").and_then(|()| input.flush()).map_err(|e| format!("{}: {e}", self.label).into())
    }

    /// Waits for the orderly end: `closed` as the last event and status 0.
    ///
    /// # Errors
    /// It ends otherwise, or not in time.
    pub fn finish(mut self) -> Result<()> {
        self.expect("closed")?;
        if let Some(event) = self.event()? {
            return Err(format!("{}: `{}` after `closed`", self.label, event.word).into());
        }
        let status = self.wait()?;
        if status.success() { Ok(()) } else { Err(format!("{}: {status}", self.label).into()) }
    }

    /// Waits for a program that kills itself, and says when it was gone.
    ///
    /// # Errors
    /// It ends otherwise, or not in time.
    pub fn died(mut self) -> Result<Instant> {
        let status = self.wait()?;
        if status.signal() == Some(Signal::KILL.as_raw()) {
            return Ok(Instant::now());
        }
        Err(format!("{}: {status} instead of SIGKILL", self.label).into())
    }

    /// Kills it; gives what it had said by then, and when it was gone.
    ///
    /// # Errors
    /// It had ended by itself before.
    pub fn kill(mut self) -> Result<(Vec<Event>, Instant)> {
        // Fails only if it has ended, which the status tells.
        let _ = self.child.kill();
        let status = self.wait()?;
        let gone = Instant::now();
        if status.signal() != Some(Signal::KILL.as_raw()) {
            return Err(format!("{}: {status} before it was killed", self.label).into());
        }
        let mut said = Vec::new();
        while let Some(event) = self.event()? {
            said.push(event);
        }
        Ok((said, gone))
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.ended = Some(status);
                return Ok(status);
            }
            if Instant::now() >= self.deadline {
                return Err(format!("{}: did not end in time", self.label).into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // Fails only if it is gone already.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_apart() {
        let event = Event::parse("end name=Closed number=9 received=3 first=-1");
        assert_eq!(event.word, "end");
        assert_eq!(event.get("name"), Some("Closed"));
        assert_eq!(event.number::<i64>("first").expect("a number"), -1);
        assert_eq!(event.get("last"), None);
        assert!(event.expect("name=Closed received=3").is_ok());
        assert!(event.expect("received=4").is_err());
        assert!(event.number::<u32>("name").is_err());
    }

    #[test]
    fn text_goes_to_the_end_of_the_line() {
        let event = Event::parse("error name=Corrupt number=12 text=length = 4, text=no");
        assert_eq!(event.get("text"), Some("length = 4, text=no"));
        assert_eq!(Event::parse("closed").word, "closed");
        assert_eq!(Event::parse("last none").get("none"), Some(""));
        assert_eq!(Event::parse("").word, "");
    }

    #[test]
    fn a_long_log_keeps_its_ends() {
        let scene = Scene::new(Duration::from_secs(1)).expect("a directory");
        for i in 0..1000 {
            scene.note("x", &i.to_string());
        }
        let log = scene.log();
        assert_eq!(log.len(), 2 * LOG_LINES + 1);
        assert!(log[0].ends_with("x: 0") && log[2 * LOG_LINES].ends_with("x: 999"), "{log:?}");
        assert_eq!(log[LOG_LINES], "... 920 lines");
        (0..9).for_each(|i| scene.note(["x", "y"][i % 2], &format!("at seq={i}")));
        let log = scene.log();
        assert!(
            log[2 * LOG_LINES - 1].ends_with("y: at seq=7") && log[2 * LOG_LINES].ends_with("x: at seq=8")
                || log[2 * LOG_LINES].ends_with("y: at seq=7"),
            "{log:?}"
        );
    }
}
