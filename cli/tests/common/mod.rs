//! What the tests of the command share: real processes, a directory of their own, generous deadlines.
#![allow(dead_code, reason = "each test file uses a part of it")]

#[path = "../../../core/src/runner.rs"]
pub mod runner;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The program under test: each package's tests have their own.
pub const PROGRAM: &str = match (option_env!("CARGO_BIN_EXE_ramway"), option_env!("CARGO_BIN_EXE_ramway-bench")) {
    (Some(ramway), _) => ramway,
    (None, Some(bench)) => bench,
    (None, None) => panic!("this package has no program to test"),
};

/// Longer than anything takes that works, on the slowest machine.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A Ramway directory of its own, and a place for files; both go with it.
pub struct Place {
    pub dir: PathBuf,
    pub files: PathBuf,
}

impl Place {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("ramway-cli-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = Path::new("/dev/shm").join(&unique);
        let files = std::env::temp_dir().join(&unique);
        for path in [&dir, &files] {
            std::fs::create_dir(path).unwrap();
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(path, private).unwrap();
        }
        Self { dir, files }
    }

    /// `ramway` with these arguments, in this place.
    pub fn ramway<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = runner::program(PROGRAM);
        command.env("RAMWAY_DIR", &self.dir).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        finish(self.ramway(args).spawn().unwrap())
    }

    /// Runs it to its end with standard descriptors as a shell's redirections make them, `>&-` for example.
    pub fn redirected(&self, args: &[&str], redirections: &str) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", &format!(r#"exec "$@" {redirections}"#), "sh"]);
        let started = runner::program(PROGRAM);
        command.arg(started.get_program()).args(started.get_args()).args(args);
        command.env("RAMWAY_DIR", &self.dir);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(command.spawn().unwrap())
    }

    /// A FIFO, and its path.
    pub fn fifo(&self, name: &str) -> String {
        let path = self.files.join(name);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Runs it to its end with this input.
    pub fn run_with(&self, args: &[&str], input: &[u8]) -> Output {
        let mut child = self.ramway(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                // A command that fails early closes its end.
                let _ = stdin.write_all(input);
            });
            finish(child)
        })
    }

    /// Writes a file and gives its path.
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.files.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The names in the Ramway directory.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.dir).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Waits until the named segment is there.
    pub fn await_name(&self, name: &str) {
        until(&format!("`{name}` appears"), || self.dir.join(name).exists());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
        let _ = std::fs::remove_dir_all(&self.files);
    }
}

/// Waits for a child and reads what it said; kills it and fails after the deadline.
pub fn finish(mut child: Child) -> Output {
    let mut readers = Vec::new();
    for pipe in [child.stdout.take().map(Pipe::Out), child.stderr.take().map(Pipe::Err)] {
        readers.push(pipe.map(|pipe| thread::spawn(move || pipe.read())));
    }
    let status = ended(&mut child);
    let mut texts = readers.into_iter().map(|reader| reader.map_or_else(Vec::new, |reader| reader.join().unwrap()));
    Output { status, stdout: texts.next().unwrap(), stderr: texts.next().unwrap() }
}

enum Pipe {
    Out(std::process::ChildStdout),
    Err(std::process::ChildStderr),
}

impl Pipe {
    fn read(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Out(mut pipe) => pipe.read_to_end(&mut bytes),
            Self::Err(mut pipe) => pipe.read_to_end(&mut bytes),
        }
        .unwrap();
        bytes
    }
}

/// Waits for a child; kills it and fails after the deadline.
pub fn ended(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > DEADLINE {
            child.kill().unwrap();
            panic!("{} did not end within {DEADLINE:?}", child.id());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DEADLINE, "gave up waiting until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to a child of ours.
pub fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Waits until a child catches SIGINT: until then it would end by default.
pub fn catches_ctrl_c(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    until("it catches SIGINT", || {
        let text = std::fs::read_to_string(&status).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (libc::SIGINT - 1) != 0
    });
}

/// Bytes that repeat nowhere near, the same for the same seed.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// The exit code and what was said on stderr, for messages.
pub fn told(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Fails unless it ended with this code and said this (and did not panic).
#[track_caller]
pub fn assert_failed(output: &Output, code: i32, said: &str) {
    let (found, text) = told(output);
    assert_eq!(found, Some(code), "{text}");
    assert!(text.contains(said), "expected `{said}` in: {text}");
    assert!(!text.contains("panicked"), "{text}");
}

/// Fails unless it ended well and said nothing.
#[track_caller]
pub fn assert_done(output: &Output) {
    assert_eq!(told(output), (Some(0), String::new()));
}

/// What was said on a pseudo terminal, at least until this was: the kernel hands it on when it likes, not at once.
#[track_caller]
pub fn heard(master: &impl std::os::fd::AsFd, what: &str) -> String {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let (mut said, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&said);
        if text.contains(what) {
            return text.into_owned();
        }
        let wait = Timespec { tv_sec: DEADLINE.as_secs() as _, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(master, PollFlags::IN)], Some(&wait)).unwrap();
        assert!(ready > 0, "expected `{what}` in: {text}");
        let count = rustix::io::read(master, &mut part).unwrap();
        said.extend_from_slice(&part[..count]);
    }
}

/// What it prints as JSON.
#[track_caller]
pub fn json(place: &Place, args: &[&str]) -> serde_json::Value {
    let output = place.run(args);
    assert_done(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What it prints.
#[track_caller]
pub fn text(place: &Place, args: &[&str]) -> String {
    let output = place.run(args);
    assert_done(&output);
    String::from_utf8(output.stdout).unwrap()
}

/// What it printed as a JSON object a line.
#[track_caller]
pub fn json_lines(output: &Output) -> Vec<serde_json::Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until the topic is there and as many subscribers with this policy live.
pub fn await_subscribers(place: &Place, topic: &str, policy: &str, count: u64) {
    place.await_name(topic);
    until(&format!("`{topic}` has {count} {policy} subscriber(s)"), || {
        let shown = place.run(&["inspect", "--json", topic]).stdout;
        let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap_or_default();
        shown["segment"]["topic"][policy] == count
    });
}
