//! What the kernel can do: each call is made, on memory and files of our own.

use std::ffi::c_int;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use super::Item;
use crate::units::short;

/// The kernel's version against what Ramway uses.
pub fn version() -> Item {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let found = format!("Linux {release}, {}, pages of {}", name.machine().to_string_lossy(), page());
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    match (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) {
        (6, 7..) | (7.., _) => Item::ok("kernel", found),
        (4, 16..) | (5 | 6, _) => Item::worse(
            "kernel",
            found,
            "before 6.7 io_uring cannot wait on a futex, so each readiness descriptor costs a helper thread",
            "use Linux 6.7 or later",
        ),
        _ => Item::worse(
            "kernel",
            found,
            "before 4.16 there is no global expedited membarrier, so every message pays for a fence",
            "use Linux 6.7 or later",
        ),
    }
}

/// A futex between two mappings of one memory, as two processes would use it.
pub fn futex() -> Item {
    const NAME: &str = "futex";
    let try_it = || -> io::Result<Duration> {
        let fd = rustix::fs::memfd_create("ramway-doctor", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&fd, page() as u64)?;
        let (one, other) = (Mapping::new(&fd)?, Mapping::new(&fd)?);
        let deadline = Instant::now() + Duration::from_secs(2);
        thread::scope(|scope| {
            let waker = scope.spawn(|| {
                // Wakes until the sleeper says that it is up: a wake before the sleep would be lost.
                while one.word().load(Ordering::Acquire) == 0 && Instant::now() < deadline {
                    futex_wake(other.word());
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let begun = Instant::now();
            let woken = futex_wait(one.word(), 0, Duration::from_secs(1));
            // `Release`: nothing else is handed over; the waker only has to see it in the end.
            one.word().store(1, Ordering::Release);
            let _ = waker.join();
            woken.map(|()| begun.elapsed())
        })
    };
    match try_it() {
        Ok(_) => Item::ok(NAME, "a sleeper on shared memory was woken through another mapping of it"),
        Err(error) => Item::broken(
            NAME,
            error.to_string(),
            "nobody could be woken",
            "allow futex, memfd_create and mmap in this sandbox (docs/SYSCALLS.md)",
        ),
    }
}

/// The barrier that lets senders go without a fence.
pub fn membarrier() -> Item {
    const NAME: &str = "membarrier";
    const GLOBAL_EXPEDITED: c_int = 1 << 1;
    const REGISTER_GLOBAL_EXPEDITED: c_int = 1 << 2;
    if std::env::var_os("RAMWAY_MEMBARRIER").is_some_and(|value| value == "0") {
        return Item::worse(
            NAME,
            "switched off by RAMWAY_MEMBARRIER=0",
            "every message pays for a fence (2.5 times the time of a small message)",
            "unset RAMWAY_MEMBARRIER",
        );
    }
    let call = |command: c_int| -> io::Result<Duration> {
        let begun = Instant::now();
        // SAFETY: membarrier takes three integers and touches no memory of ours.
        match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(begun.elapsed()),
        }
    };
    match call(REGISTER_GLOBAL_EXPEDITED).and_then(|registering| Ok((registering, call(GLOBAL_EXPEDITED)?))) {
        Ok((registering, barrier)) => {
            Item::ok(NAME, format!("registered in {}, a barrier took {}", short(registering), short(barrier)))
        }
        Err(error) => Item::worse(
            NAME,
            error.to_string(),
            "every message pays for a fence (2.5 times the time of a small message)",
            "use Linux 4.16 or later, and allow membarrier in this sandbox (docs/SYSCALLS.md)",
        ),
    }
}

/// A futex that an io_uring waits for: the readiness descriptors.
pub fn io_uring() -> Item {
    const NAME: &str = "io_uring futex";
    const HELPER: &str = "a readiness descriptor (epoll, asyncio, tokio, libuv) costs a helper thread";
    let setting = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match uring_futex() {
        Ok(()) => Item::ok(NAME, "a FUTEX_WAIT request was completed by a wake-up"),
        Err(error) => {
            let fix = match setting.trim() {
                "1" => "sysctl kernel.io_uring_disabled=0, or add this user to kernel.io_uring_group",
                "2" => "sysctl kernel.io_uring_disabled=0",
                _ => "use Linux 6.7 or later, and allow io_uring in this sandbox (containers' default profiles do not)",
            };
            Item::worse(NAME, error.to_string(), HELPER, fix)
        }
    }
}

fn uring_futex() -> io::Result<()> {
    const FUTEX2_SIZE_U32: u32 = 2;
    const ANY: u64 = u32::MAX as u64;
    // Before the ring, so that it outlives the request: dropping the ring cancels what is still in flight.
    let word = AtomicU32::new(1);
    let mut ring = IoUring::new(2)?;
    let wait = opcode::FutexWait::new(word.as_ptr(), 1, ANY, FUTEX2_SIZE_U32).build();
    // SAFETY: the word outlives the ring, and the request reads nothing else.
    unsafe { ring.submission().push(&wait) }.map_err(|_| io::Error::other("the submission queue is full"))?;
    ring.submit()?;
    for _ in 0..1000 {
        if let Some(entry) = ring.completion().next() {
            return match entry.result() {
                ..0 => Err(io::Error::from_raw_os_error(-entry.result())),
                _ => Ok(()),
            };
        }
        futex_wake(&word);
        let pause = types::Timespec::from(Duration::from_millis(2));
        match ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&pause)) {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => return Err(error),
            _ => {}
        }
    }
    Err(io::Error::other("the wake-up completed nothing within 2 s"))
}

/// A memfd that can no longer shrink: what a bus trusts.
pub fn sealing() -> Item {
    const NAME: &str = "memfd sealing";
    let try_it = || -> io::Result<()> {
        let fd = rustix::fs::memfd_create("ramway-doctor", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&fd, page() as u64)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        match rustix::fs::ftruncate(&fd, 0) {
            Err(rustix::io::Errno::PERM) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(()) => Err(io::Error::other("a sealed memfd could be truncated")),
        }
    };
    match try_it() {
        Ok(()) => Item::ok(NAME, "a sealed memfd refused to shrink"),
        Err(error) => Item::broken(
            NAME,
            error.to_string(),
            "no bus can be made (named rings and regions still work)",
            "allow memfd_create and F_ADD_SEALS in this sandbox (docs/SYSCALLS.md)",
        ),
    }
}

/// Locks that belong to an open file, on the file system that holds the named segments.
pub fn locks(place: &Path) -> Item {
    const NAME: &str = "OFD locks";
    let try_it = || -> io::Result<()> {
        let holder = OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(place)?;
        let path = format!("/proc/self/fd/{}", holder.as_raw_fd());
        let other = OpenOptions::new().read(true).write(true).open(path)?;
        if !lock(&holder, libc::F_OFD_SETLK)? {
            return Err(io::Error::other("a byte that nobody holds could not be locked"));
        }
        if lock(&other, libc::F_OFD_GETLK)? || lock(&other, libc::F_OFD_SETLK)? {
            return Err(io::Error::other("two open files locked the same byte"));
        }
        drop(holder);
        if lock(&other, libc::F_OFD_SETLK)? { Ok(()) } else { Err(io::Error::other("closing a file kept its lock")) }
    };
    let place = place.display();
    match try_it() {
        Err(_) if !Path::new("/proc/self/fd").exists() => Item::worse(
            NAME,
            format!("not examined in {place}: that takes /proc"),
            "named segments need them to know who is alive",
            "mount /proc, and ask again",
        ),
        Ok(()) => Item::ok(NAME, format!("taken, seen from another open file, and let go on close, in {place}")),
        Err(error) => Item::broken(
            NAME,
            format!("{error}, in {place}"),
            "named segments need them to know who is alive (buses still work)",
            "set RAMWAY_DIR to a directory on a tmpfs that you may write to",
        ),
    }
}

/// Byte 1, exclusively. SETLK: whether it was taken. GETLK: whether it could be.
fn lock(file: &File, command: c_int) -> io::Result<bool> {
    // SAFETY: an all-zero `flock` is a valid value of that plain struct.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = libc::F_WRLCK as _;
    range.l_whence = libc::SEEK_SET as _;
    range.l_start = 1;
    range.l_len = 1;
    // SAFETY: the descriptor is open and `range` lives through the call, which reads and writes only it.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &mut range) } {
        -1 => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            error => Err(error),
        },
        _ => Ok(command != libc::F_OFD_GETLK || range.l_type == libc::F_UNLCK as libc::c_short),
    }
}

/// One page of a memfd, shared.
struct Mapping(*mut AtomicU32);

// SAFETY: the mapping is used only as an atomic word.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: &OwnedFd) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice; the file is a page long.
        let at = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), page(), ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, fd, 0)
        }?;
        Ok(Self(at.cast()))
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: a page-aligned, zeroed and mapped word that lives as long as `self`.
        unsafe { &*self.0 }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped exactly this, and no reference outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.0.cast(), page()) };
    }
}

fn futex_wait(word: &AtomicU32, expected: u32, timeout: Duration) -> io::Result<()> {
    let timeout = libc::timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos() as _ };
    // SAFETY: the word and the timeout live through the call.
    match unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, &raw const timeout) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn futex_wake(word: &AtomicU32) {
    // SAFETY: waking reads nothing; the address only names a queue.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

fn page() -> usize {
    rustix::param::page_size()
}
