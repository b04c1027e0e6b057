//! Images as real files and memfds, and what is done to them while a reader has them.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use super::image::{hex, unhex};
use super::model::{Run, Segment};

/// What went wrong, in words.
pub type Result<T> = std::result::Result<T, String>;

/// Adds what was tried to an error.
pub fn tried<T, E: std::fmt::Display>(what: &str, result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|cause| format!("{what}: {cause}"))
}

/// The image as a file at this path.
pub fn file(segment: &Segment, path: &Path) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let file = tried(&path.display().to_string(), file)?;
    tried("chmod", rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(0o600)))?;
    fill(file.as_fd(), segment, segment.size)?;
    Ok(file)
}

/// The image as a memfd of this size with these seals.
pub fn memory(segment: &Segment, size: u64, seals: &[String]) -> Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = tried("memfd_create", rustix::fs::memfd_create("ramway-vector", flags))?;
    fill(fd.as_fd(), segment, size)?;
    let mut set = SealFlags::empty();
    for name in seals {
        set |= match name.as_str() {
            "shrink" => SealFlags::SHRINK,
            "grow" => SealFlags::GROW,
            "seal" => SealFlags::SEAL,
            "write" => SealFlags::WRITE,
            "future_write" => SealFlags::FUTURE_WRITE,
            other => return Err(format!("there is no seal '{other}'")),
        };
    }
    if !set.is_empty() {
        tried("F_ADD_SEALS", rustix::fs::fcntl_add_seals(&fd, set))?;
    }
    Ok(fd)
}

fn fill(fd: BorrowedFd<'_>, segment: &Segment, size: u64) -> Result<()> {
    tried("ftruncate", rustix::fs::ftruncate(fd, size))?;
    for run in &segment.bytes {
        let bytes = bytes(&run.hex)?;
        let len = size.saturating_sub(run.at).min(bytes.len() as u64) as usize;
        if len > 0 {
            tried("pwrite", rustix::io::pwrite(fd, &bytes[..len], run.at))?;
        }
    }
    Ok(())
}

/// The bytes of a run.
pub fn bytes(digits: &str) -> Result<Vec<u8>> {
    unhex(digits).ok_or_else(|| format!("'{digits}' is not hexadecimal"))
}

/// Writes the runs one after the other, words of 4 and 8 bytes with one store.
pub fn poke(fd: BorrowedFd<'_>, runs: &[Run]) -> Result<()> {
    runs.iter().try_for_each(|run| poke_run(fd, run.at, &bytes(&run.hex)?))
}

fn poke_run(fd: BorrowedFd<'_>, at: u64, bytes: &[u8]) -> Result<()> {
    let word = matches!(bytes.len(), 4 | 8) && at.is_multiple_of(bytes.len() as u64);
    if !word {
        return tried("pwrite", rustix::io::pwrite(fd, bytes, at)).map(drop);
    }
    with_word(fd, at, |to| {
        // SAFETY: `to` lies in a mapped page, aligned to its own size, and the reader accesses it atomically too.
        // Release: a process that sees it sees what was written before.
        unsafe {
            match *bytes {
                [a, b, c, d] => {
                    AtomicU32::from_ptr(to.cast()).store(u32::from_le_bytes([a, b, c, d]), Ordering::Release)
                }
                [a, b, c, d, e, f, g, h] => {
                    AtomicU64::from_ptr(to.cast())
                        .store(u64::from_le_bytes([a, b, c, d, e, f, g, h]), Ordering::Release);
                }
                _ => unreachable!("a word has 4 or 8 bytes"),
            }
        }
        Ok(())
    })
}

/// Wakes the waiter on the word at `at`, as every side does that has published or released something. The format has
/// no other way to end a sleep in time.
pub fn wake(fd: BorrowedFd<'_>, at: u64) -> Result<()> {
    with_word(fd, at, |to| {
        // SAFETY: as above.
        let word = unsafe { AtomicU32::from_ptr(to.cast()) };
        // SeqCst: after what was published.
        if word.swap(0, Ordering::SeqCst) != 0 {
            tried("futex", rustix::thread::futex::wake(word, rustix::thread::futex::Flags::empty(), i32::MAX as u32))?;
        }
        Ok(())
    })
}

/// Maps the page of the word at `at`.
fn with_word(fd: BorrowedFd<'_>, at: u64, act: impl FnOnce(*mut u8) -> Result<()>) -> Result<()> {
    const PAGE: u64 = 4096;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), PAGE as usize, protection, MapFlags::SHARED, fd, at & !(PAGE - 1))
    };
    let page = tried("mmap", page)?;
    // SAFETY: `at` lies in the page that was just mapped.
    let acted = act(unsafe { page.cast::<u8>().add((at & (PAGE - 1)) as usize) });
    // SAFETY: nobody uses the page any more.
    tried("munmap", unsafe { rustix::mm::munmap(page, PAGE as usize) })?;
    acted
}

/// Whether the file holds what a reader must leave.
pub fn compare(fd: BorrowedFd<'_>, leaves: &[Run]) -> Result<()> {
    for run in leaves {
        let expected = bytes(&run.hex)?;
        let mask = run.mask.as_deref().map_or(Ok(vec![0xFF; expected.len()]), bytes)?;
        let mut found = vec![0; expected.len()];
        let n = tried("pread", rustix::io::pread(fd, &mut found[..], run.at))?;
        let same = n == expected.len() && (0..n).all(|i| (found[i] ^ expected[i]) & mask[i] == 0);
        if !same {
            let (at, found) = (run.at, hex(&found[..n]));
            let masked = run.mask.as_ref().map_or(String::new(), |mask| format!(" in the bits {mask}"));
            return Err(format!("it leaves {found} at {at:#x}, expected {}{masked}", run.hex));
        }
    }
    Ok(())
}
