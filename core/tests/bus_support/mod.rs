//! What the bus tests share: a directory of their own, and other processes, which are this test binary again.
#![allow(dead_code)] // each test binary uses its part

pub mod raw;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A machine under load may be this slow; no test asserts on less without saying so.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A directory in memory that goes away with the test.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/dev/shm/ramway-test-bus-{}-{count}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn entries(&self) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What this process is to play, if it was started by [`Player::start`].
pub fn part() -> Option<String> {
    std::env::var("RAMWAY_TEST_PART").ok()
}

/// The argument that the part was given.
pub fn argument() -> String {
    std::env::var("RAMWAY_TEST_ARGUMENT").unwrap()
}

/// Tells the test something, one line at a time.
pub fn tell(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n>{line}").unwrap();
    out.flush().unwrap();
}

/// Waits until the test says something (or is gone).
pub fn listen() -> String {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// Another process, killed if the test ends before it does.
pub struct Player {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Player {
    /// Starts this test binary to play a part in its test `parts`.
    pub fn start(part: &str, argument: impl AsRef<Path>) -> Self {
        Self::start_in(part, argument, None)
    }

    /// The same with a Ramway directory.
    pub fn start_in(part: &str, argument: impl AsRef<Path>, dir: Option<&Dir>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "parts", "--nocapture", "--test-threads=1"]);
        command.env("RAMWAY_TEST_PART", part).env("RAMWAY_TEST_ARGUMENT", argument.as_ref());
        if let Some(dir) = dir {
            command.env("RAMWAY_DIR", dir.path());
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it tells; panics if it ends instead.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            if self.out.read_line(&mut line).unwrap() == 0 {
                panic!("the other process ended ({:?}) without saying what was expected", self.child.wait());
            }
            if let Some(said) = line.strip_prefix('>') {
                return said.trim_end().to_owned();
            }
        }
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// SIGKILL, and when it was sent.
    pub fn kill(&mut self) -> Instant {
        let now = Instant::now();
        self.child.kill().unwrap();
        now
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: our own child, not waited for yet, so the number is still its.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    pub fn wait(&mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        let _ = self.out.read_to_string(&mut rest);
        self.child.wait().unwrap()
    }

    /// Waits for an end without failure.
    pub fn finish(mut self) {
        let status = self.wait();
        assert!(status.success(), "the other process ended with {status}");
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How many descriptors this process has.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits for something that happens soon.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs `work` and fails if it does not end in time, instead of hanging.
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        let _ = done.send(work());
    });
    match wait.recv_timeout(limit) {
        Ok(result) => result,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("not done within {limit:?}"),
        Err(_) => match worker.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("the worker sends before it ends"),
        },
    }
}
