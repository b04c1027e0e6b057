//! What the tests share: a directory of their own, and real processes, which are the test binary again, that say what
//! they do.
#![allow(dead_code)] // each test binary uses a part of it

pub mod caller;
pub mod raw;
pub mod readiness;
pub mod rpc;
#[path = "../../src/runner.rs"]
pub mod runner;
pub mod topic;

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Far more than anything here takes, so that a slow machine is not a failure and a hang is one.
pub const LONG: Duration = Duration::from_secs(60);

/// A directory in memory that goes when the test does.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = PathBuf::from(format!("/dev/shm/ramway-test-{}-{n}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Self(path),
                // A test that was killed left it, and this process has that one's number.
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => panic!("{}: {e}", path.display()),
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A path in it: with a `/`, so it means the same in every process whatever `RAMWAY_DIR` is.
    pub fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What is in it.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const ROLE: &str = "RAMWAY_TEST_ROLE";

/// What this process is to do if it is another one's [`Peer`]: the role and its arguments. A test binary that uses
/// [`Peer::start`] has a test named `helper` that begins with this and returns if it gives `None`.
pub fn helper_role() -> Option<Vec<String>> {
    let role = std::env::var(ROLE).ok()?;
    Some(role.split('\n').map(String::from).collect())
}

/// In a peer: the argument of its role.
pub fn argument() -> String {
    helper_role().unwrap().swap_remove(1)
}

/// The argument of [`Peer::again`], in the process that it started for `test`.
pub fn argument_of(test: &str) -> Option<PathBuf> {
    let role = helper_role()?;
    (role[0] == test).then(|| PathBuf::from(&role[1]))
}

/// In a peer: tells the parent something.
pub fn say(what: impl Display) {
    // The test harness writes to the same stream without ending its lines.
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n@{what}").unwrap();
    out.flush().unwrap();
}

/// In a peer: the parent's next word; "" when it is gone.
pub fn listen() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim().into()
}

/// This test binary again, to run one of its tests.
pub fn only(test: &str) -> Command {
    let mut command = runner::again();
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command
}

/// Another process, killed if the test ends before it does.
pub struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// What it writes on standard error, a panic's words among it, which a failure here is shown with.
    errors: Option<JoinHandle<String>>,
}

impl Peer {
    /// Runs the `helper` test of this binary in a role: its name, then its arguments.
    pub fn start(role: &[&str]) -> Self {
        Self::start_with(role, |_| {})
    }

    pub fn start_with(role: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let mut command = only("helper");
        change(&mut command);
        Self::spawn(command, &role.join("\n"))
    }

    /// Runs `test` itself, where [`argument_of`] gives `argument`.
    pub fn again(test: &str, argument: &Path) -> Self {
        Self::spawn(only(test), &format!("{test}\n{}", argument.display()))
    }

    fn spawn(mut command: Command, role: &str) -> Self {
        command.env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self { child, stdin, stdout, errors: Some(errors) }
    }

    /// The next thing that it says. Panics if it ends first.
    pub fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            let n = self.stdout.read_line(&mut line).unwrap();
            if n == 0 {
                let status = self.child.wait();
                panic!("the other process ended without a word: {status:?}\n{}", self.complaints());
            }
            if let Some(said) = line.trim_end().strip_prefix('@') {
                return said.into();
            }
        }
    }

    /// Waits until it says just this.
    pub fn expect(&mut self, what: &str) {
        assert_eq!(self.hear(), what);
    }

    pub fn tell(&mut self, what: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{what}").unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: `kill` on our own child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(self.pid() as i32, signal) }, 0);
    }

    /// SIGKILL, and waits until the kernel has let go of all it had.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it go on to its end, which must be a success.
    pub fn finish(self) {
        self.rest();
    }

    /// The same, and gives the rest of what it said.
    pub fn rest(mut self) -> String {
        drop(self.stdin.take());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the other process: {status}\n{rest}{}", self.complaints());
        rest
    }

    /// All that it wrote on standard error, once it has ended.
    fn complaints(&mut self) -> String {
        self.errors.take().map_or_else(String::new, |thread| thread.join().unwrap())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file that tests map to meet in: `arrive` returns when all have.
pub struct Barrier(*mut AtomicU32);

impl Barrier {
    pub fn make(path: &str) {
        std::fs::write(path, [0; 4096]).unwrap();
    }

    pub fn open(path: &str) -> Self {
        use std::os::fd::AsRawFd;
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        // SAFETY: a fresh mapping of a file of a page.
        let at = unsafe {
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), 4096, prot, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(at, libc::MAP_FAILED);
        Self(at.cast())
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the mapping stays until the process ends.
        unsafe { &*self.0 }
    }

    /// Waits until `count` calls were made, in all processes together.
    pub fn arrive(&self, count: u32) {
        self.word().fetch_add(1, Ordering::SeqCst);
        let mut looks = 0u32;
        while self.word().load(Ordering::SeqCst) < count {
            looks += 1;
            // Close together on two CPUs, and no waste where there is one.
            if looks.is_multiple_of(64) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

/// Whether this test may do what only root may.
pub fn is_root() -> bool {
    // SAFETY: no arguments, no effects.
    unsafe { libc::geteuid() == 0 }
}

/// Mounts a new tmpfs over `dir`, in a mount namespace that goes with this process. `false` if this process may not:
/// without root that takes a user namespace, which not every system allows.
pub fn mount_tmpfs(dir: &str, options: &str) -> bool {
    let c = |text: &str| std::ffi::CString::new(text).unwrap();
    let (tmpfs, root, at, options) = (c("tmpfs"), c("/"), c(dir), c(options));
    // SAFETY: system calls on strings that outlive them. Unsharing also the user namespace where we are not root.
    unsafe {
        let namespaces = libc::CLONE_NEWNS | if libc::geteuid() == 0 { 0 } else { libc::CLONE_NEWUSER };
        libc::unshare(namespaces) == 0
            && libc::mount(
                std::ptr::null(),
                root.as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
            && libc::mount(tmpfs.as_ptr(), at.as_ptr(), tmpfs.as_ptr(), 0, options.as_ptr().cast()) == 0
    }
}

/// Waits until `done` says so, or fails.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONG, "not within {LONG:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A socket of another program's that nobody listens at any more.
pub fn dead_socket(path: impl AsRef<Path>) {
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    is_refused(path);
}

/// Waits until a socket that was closed is: a process that another thread is just starting has it open until then.
pub fn is_refused(path: impl AsRef<Path>) {
    use std::io::ErrorKind::ConnectionRefused;
    use std::os::unix::net::UnixStream;
    eventually("nobody listens", || UnixStream::connect(&path).is_err_and(|e| e.kind() == ConnectionRefused));
}

/// How many descriptors this process has.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
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

/// Locks or unlocks one byte of the file as a handle would.
pub fn lock_byte(file: &std::fs::File, byte: i64, kind: i32) {
    // SAFETY: plain old data, and one `fcntl` on it.
    unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        (lock.l_type, lock.l_start, lock.l_len) = (kind as i16, byte, 1);
        assert_eq!(libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(file), libc::F_OFD_SETLK, &lock), 0);
    }
}
