//! Where shared memory comes from, and how much of it there is.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::process::{Resource, getrlimit};

use super::Item;
use crate::units::size;

/// Below this, a few rings of ordinary capacity fill /dev/shm (containers get 64 MiB by default).
const SHM_SMALL: u64 = 256 << 20;
/// Below this, `lock_memory` fails for all but small segments.
const MEMLOCK_SMALL: u64 = 64 << 20;

/// The nearest existing directory to where named segments go.
pub fn place() -> PathBuf {
    let directory = ramway::survey::directory();
    directory.ancestors().find(|path| path.is_dir()).map_or_else(|| PathBuf::from("/"), Path::to_path_buf)
}

/// The directory of named segments.
pub fn directory() -> Item {
    const NAME: &str = "directory";
    let path = ramway::survey::directory();
    let shown = path.display();
    let metadata = match fs::symlink_metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = place();
            let free = rustix::fs::access(&parent, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
            return match free {
                Ok(()) => Item::ok(NAME, format!("{shown} does not exist yet and will be made")),
                Err(error) => Item::broken(
                    NAME,
                    format!("{shown} does not exist, and {} cannot be written: {error}", parent.display()),
                    "no named segment can be made",
                    "set RAMWAY_DIR to a directory of yours on a tmpfs",
                ),
            };
        }
        Err(error) => {
            let fix = "set RAMWAY_DIR to a directory of yours on a tmpfs";
            return Item::broken(NAME, format!("{shown}: {error}"), "no named segment can be made", fix);
        }
    };
    let me = rustix::process::geteuid().as_raw();
    if !metadata.is_dir() || metadata.uid() != me {
        let what =
            if metadata.is_dir() { format!("belongs to user {}", metadata.uid()) } else { "is not a directory".into() };
        return Item::broken(
            NAME,
            format!("{shown} {what}"),
            "somebody else could swap the segments",
            "remove it, or set RAMWAY_DIR to a directory of yours on a tmpfs",
        );
    }
    let kind = file_system(&path);
    let found = format!("{shown}, mode {:04o}, {kind}", metadata.mode() & 0o7777);
    if kind != "tmpfs" {
        return Item::worse(
            NAME,
            found,
            "segments on a disk are refused unless the program asks for them, and are written back to it",
            "set RAMWAY_DIR to a directory on a tmpfs, such as /dev/shm",
        );
    }
    if metadata.mode() & 0o022 != 0 {
        return Item::worse(
            NAME,
            found,
            "others may write to it: they can remove, replace or truncate segments, which kills their users",
            format!("chmod 700 {shown}"),
        );
    }
    Item::ok(NAME, found)
}

fn file_system(path: &Path) -> String {
    const TMPFS: u64 = 0x0102_1994;
    match rustix::fs::statfs(path) {
        Ok(found) if found.f_type as u64 == TMPFS => "tmpfs".into(),
        Ok(found) => format!("file system type {:#x}", found.f_type),
        Err(error) => format!("file system unknown: {error}"),
    }
}

/// How much /dev/shm (or the file system of RAMWAY_DIR) holds.
pub fn shm() -> Item {
    const NAME: &str = "shared memory";
    let place = place();
    let shown = place.display();
    let found = match rustix::fs::statvfs(&place) {
        Ok(found) => found,
        Err(error) => {
            let fix = "mount a tmpfs there";
            return Item::broken(NAME, format!("{shown}: {error}"), "no named segment can be made", fix);
        }
    };
    let (total, free) = (found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize);
    let text = format!("{} free of {} in {shown}", size(free), size(total));
    if total < SHM_SMALL {
        Item::worse(
            NAME,
            text,
            "a few large rings fill it; more is refused as NoSpace",
            format!("mount -o remount,size=2G {shown}, or for a container --shm-size=2g"),
        )
    } else if free < total / 10 {
        Item::worse(NAME, text, "less than a tenth is left", "ramway clean, and look for what else lies there")
    } else {
        Item::ok(NAME, text)
    }
}

/// How much memory may be locked, and whether it really can be.
pub fn memlock() -> Item {
    const NAME: &str = "memlock limit";
    let limit = getrlimit(Resource::Memlock).current;
    let page = vec![0_u8; rustix::param::page_size() * 2];
    // SAFETY: the range is ours; locking it changes no bytes, and it is unlocked again before it is freed.
    let locked = unsafe {
        let (at, len) = (page.as_ptr() as *mut _, page.len());
        rustix::mm::mlock(at, len).and_then(|()| rustix::mm::munlock(at, len))
    };
    let ignored = may_ignore_limits();
    let mut found = limit.map_or_else(|| "unlimited".to_owned(), size);
    if ignored && limit.is_some() {
        found.push_str(", which this process may exceed (CAP_IPC_LOCK)");
    }
    let because = "segments with `lock_memory` beyond it are refused, so they may be swapped out";
    let fix = "ulimit -l unlimited, LimitMEMLOCK=infinity in the unit, or --ulimit memlock=-1 for a container";
    match (locked, limit) {
        (Err(error), _) => {
            Item::worse(NAME, format!("{found}, but two pages could not be locked: {error}"), because, fix)
        }
        (Ok(()), Some(limit)) if limit < MEMLOCK_SMALL && !ignored => Item::worse(NAME, found, because, fix),
        (Ok(()), _) => Item::ok(NAME, format!("{found}; two pages were locked")),
    }
}

/// Whether this process has CAP_IPC_LOCK.
fn may_ignore_limits() -> bool {
    const IPC_LOCK: u32 = 14;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_some_and(|set| set >> IPC_LOCK & 1 == 1)
}

/// Transparent huge pages of shared memory: the kind that `huge_pages` asks for.
pub fn huge_pages() -> Item {
    const NAME: &str = "huge pages";
    let setting = |name| {
        let path = format!("/sys/kernel/mm/transparent_hugepage/{name}");
        fs::read_to_string(path).unwrap_or_else(|_| "not there".to_owned()).trim().to_owned()
    };
    let huge = setting("hpage_pmd_size").parse().unwrap_or(2 << 20);
    let found = format!("of {}, transparent for shared memory: {}", size(huge), chosen(&setting("shmem_enabled")));
    match put_together(huge as usize) {
        Ok(()) => Item::ok(NAME, format!("{found}; one was put together on request")),
        Err(error) => Item::worse(
            NAME,
            format!("{found}; putting one together: {error}"),
            "`huge_pages` may be refused; segments of many MiB then cost more TLB misses",
            "Linux 6.1 or later, or echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled",
        ),
    }
}

/// The word in brackets of a setting such as `always [never] advise`.
fn chosen(setting: &str) -> String {
    let inside = setting.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or_else(|| "not there".to_owned(), |(word, _)| word.to_owned())
}

/// Fills as much of a memfd as a huge page holds, and asks for one.
fn put_together(huge: usize) -> io::Result<()> {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    /// Linux's number (6.1+): the `libc` crate has it for glibc only.
    const MADV_COLLAPSE: i32 = 25;
    let fd = rustix::fs::memfd_create("ramway-doctor", MemfdFlags::CLOEXEC)?;
    rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, huge as u64)?;
    // Twice the address space, so that a whole huge page lies in it at a multiple of its size.
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let at = unsafe { mmap(std::ptr::null_mut(), 2 * huge, ProtFlags::empty(), MapFlags::PRIVATE, &fd, 0) }?;
    let start = at.cast::<u8>().wrapping_add(at.addr().next_multiple_of(huge) - at.addr());
    let both = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: it replaces a part of the mapping above, which nobody else knows; so it is ours to write and to unmap.
    let done = unsafe {
        mmap(start.cast(), huge, both, MapFlags::SHARED | MapFlags::FIXED, &fd, 0).map(|_| {
            start.write_bytes(1, huge);
            match libc::madvise(start.cast(), huge, MADV_COLLAPSE) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        })
    };
    // SAFETY: as above.
    unsafe { munmap(at, 2 * huge) }?;
    done?
}
