//! Directories that a pair uses and that go with it, in memory and on a disk.

use crate::Result;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "ramway-bench-";

/// A directory of this process that is removed with this.
pub(crate) struct Directory {
    path: PathBuf,
    /// Locked for as long as the directory is in use: who cleans up leaves it alone, in whatever container.
    _lock: File,
}

impl Directory {
    pub(crate) fn new(base: &Path) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only the difference of the numbers matters.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path).map_err(|cause| format!("create {}: {cause}", path.display()))?;
        let lock = File::open(&path)?;
        lock_now(&lock);
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left behind then is removed by the next run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whether nobody else has it locked; locked then.
fn lock_now(file: &File) -> bool {
    // SAFETY: a descriptor that is open for as long as `file` lives.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Where directories in memory are made. Where that is not allowed they are made elsewhere, which is all the same to a pipe;
/// what needs memory says so.
pub(crate) fn memory() -> PathBuf {
    // SAFETY: reads a constant string.
    let writable = unsafe { libc::access(c"/dev/shm".as_ptr(), libc::W_OK | libc::X_OK) } == 0;
    if writable { PathBuf::from("/dev/shm") } else { std::env::temp_dir() }
}

/// Where directories on a disk are made: RAMWAY_BENCH_DISK, or the first of the usual places that is not in memory.
pub(crate) fn disk() -> PathBuf {
    if let Some(chosen) = std::env::var_os("RAMWAY_BENCH_DISK") {
        return chosen.into();
    }
    let mut places = vec![std::env::temp_dir(), PathBuf::from("/var/tmp")];
    places.extend(std::env::current_dir());
    places.into_iter().find(|place| !in_memory(place)).unwrap_or_else(std::env::temp_dir)
}

fn in_memory(place: &Path) -> bool {
    let Ok(place) = File::open(place) else { return true };
    // SAFETY: a zeroed struct that the call fills in.
    let kind = unsafe {
        let mut about: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(place.as_raw_fd(), &mut about) != 0 {
            return true;
        }
        about.f_type
    };
    matches!(kind, libc::TMPFS_MAGIC) || kind as u64 == 0x8584_58F6
}

/// Removes what runs that were killed have left behind: directories and files of ours that nobody has locked, of processes
/// that do not exist (so that one that is about to lock its directory keeps it).
pub(crate) fn remove_stale() {
    for base in [memory(), disk()] {
        for entry in fs::read_dir(base).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<i32>().ok());
            let Some(pid) = pid else { continue };
            if !lives(pid) && open(&entry.path()).is_ok_and(|file| lock_now(&file)) {
                // What cannot be removed is another user's. A file is a shared memory object of `shm-by-hand`.
                let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
            }
        }
    }
}

/// Of anybody's: a link is not followed, and a pipe is not waited for.
fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

/// Whether a process exists that has not ended: a zombie has.
fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name, which may hold anything, comes the state.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
