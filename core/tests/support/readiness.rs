//! What the tests of readiness descriptors share. Each runs with both ways of making them, in processes of its own.

pub use super::LONG;
use ramway::{Bus, ErrorKind, Readiness, Receiver, Sender};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Which test a child runs, and which part of it.
pub const TEST_NAME: &str = "RAMWAY_READINESS_TEST";
pub const PART: &str = "RAMWAY_READINESS_PART";

/// A child of this test binary that runs `test` with the method `uring` or `thread`.
pub fn command(test: &str, part: &str, method: &str) -> Command {
    let mut command = super::only(test);
    command.env(TEST_NAME, test).env(PART, part).env("RAMWAY_READINESS", method);
    command
}

/// Runs `body` in a process for each method. `body` gets the part that it is to play: "" for the main one.
pub fn with_both_methods(test: &str, body: impl Fn(&str)) {
    if std::env::var(TEST_NAME).is_ok_and(|it| it == test) {
        return body(&std::env::var(PART).unwrap());
    }
    for method in ["uring", "thread"] {
        if method == "uring" && !has_uring() {
            println!("skipped: io_uring cannot wait on a futex here");
            continue;
        }
        let output = command(test, "", method).output().unwrap();
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        for line in text.lines().filter_map(|line| Some(line.split_once("figure: ")?.1)) {
            println!("{method}: {line}");
        }
        assert!(output.status.success(), "{method}: {}: {text}", output.status);
    }
}

pub fn has_uring() -> bool {
    use std::sync::OnceLock;
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| command("uring_is_there", "", "uring").output().unwrap().status.success())
}

/// The other process of a test.
pub fn part(test: &str, part: &str) -> Child {
    let method = std::env::var("RAMWAY_READINESS").unwrap();
    command(test, part, &method).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

pub fn said(child: &mut Child, text: &str) -> bool {
    BufReader::new(child.stdout.as_mut().unwrap()).lines().map_while(Result::ok).any(|line| line.contains(text))
}

pub fn say(text: &str) {
    println!("{text}");
    std::io::stdout().flush().unwrap();
}

/// A name that the processes of a test share, removed with its file.
pub struct Name(pub PathBuf);

impl Name {
    pub fn new(test: &str) -> Self {
        Self(format!("/dev/shm/ramway-ready-{}-{test}", std::process::id()).into())
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub fn halves(bus: Bus) -> (Sender, Receiver) {
    let (tx, rx) = bus.split();
    (tx.unwrap(), rx.unwrap())
}

pub fn fd(readiness: ramway::Result<&Readiness>) -> OwnedFd {
    readiness.unwrap().as_fd().try_clone_to_owned().unwrap()
}

/// Whether it is readable, or becomes so in time.
pub fn poll(fd: impl AsFd, timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).as_millis() as i32;
        let mut fds = libc::pollfd { fd: fd.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one struct that outlives the call.
        match unsafe { libc::poll(&mut fds, 1, left) } {
            0 => return false,
            1 => return true,
            // A completion's work may interrupt, as a signal does.
            _ => assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINTR)),
        }
    }
}

/// Polls as an event loop does; a wait that lasts this long has missed its event.
pub fn must_become_readable(fd: BorrowedFd<'_>, what: &str) {
    let started = Instant::now();
    assert!(poll(fd, LONG), "{what}: never became readable");
    assert!(started.elapsed() < LONG / 2, "{what}: became readable far too late");
}

pub fn kind<T>(result: ramway::Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

/// A pause of up to 100 µs that differs from round to round.
pub fn jitter(seed: &mut u64) {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    for _ in 0..(*seed >> 33) % 2_000 {
        std::hint::spin_loop();
    }
    if *seed >> 60 == 0 {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// From here on the kernel refuses this system call to this thread, as a container's filter would.
pub fn forbid(number: libc::c_long) {
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        // The number is the first word of `seccomp_data`.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, number as u32, 0, 1),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which lives until the call returns.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
}
