//! How much memory or file system space is left, asked before it is taken: a page that is missing later is a
//! SIGBUS or the OOM killer, one that is missing now is [`ErrorKind::NoSpace`].

use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::sys::os;

/// Left to page tables, the process itself and everybody else, at most; of a small limit a 32nd part.
const HEADROOM_MAX: u64 = 16 << 20;

/// What limits the bytes behind one descriptor.
pub(super) struct Limits<'a> {
    fd: BorrowedFd<'a>,
    /// The file's pages are memory for as long as it lives, not a cache of a disk.
    in_memory: bool,
    groups: Vec<Group>,
}

impl<'a> Limits<'a> {
    pub(super) fn of(fd: BorrowedFd<'a>) -> Result<Self> {
        let statfs = rustix::fs::fstatfs(fd).map_err(os("fstatfs of the segment"))?;
        let in_memory = matches!(statfs.f_type as u32, TMPFS_MAGIC | RAMFS_MAGIC);
        let groups = if in_memory { memory_groups() } else { Vec::new() };
        Ok(Self { fd, in_memory, groups })
    }

    /// `NoSpace`, naming the limit, unless `needed` more bytes are available now. A limit that cannot be read (no
    /// `/proc`, a container that hides its group) does not limit.
    pub(super) fn check(&self, needed: u64) -> Result<()> {
        let vfs = rustix::fs::fstatvfs(self.fd).map_err(os("fstatvfs of the segment"))?;
        // A memfd, and a tmpfs mounted with size=0, count no blocks: no limit of the file system's.
        if vfs.f_blocks > 0 {
            let available = vfs.f_bavail.saturating_mul(vfs.f_frsize);
            compare(needed, available, || "its file system's free space (df)".into())?;
        }
        if !self.in_memory {
            return Ok(());
        }
        if let Some((total, available)) = fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo(&text)) {
            compare(needed, less_headroom(available, total), || "the machine's MemAvailable (/proc/meminfo)".into())?;
        }
        for group in &self.groups {
            if let Some((limit, available)) = group.available() {
                compare(needed, less_headroom(available, limit), || {
                    format!("the control group's limit ({} = {limit})", group.limit_file().display())
                })?;
            }
        }
        Ok(())
    }
}

const TMPFS_MAGIC: u32 = 0x0102_1994;
const RAMFS_MAGIC: u32 = 0x8584_58f6;

fn compare(needed: u64, available: u64, limit: impl FnOnce() -> String) -> Result<()> {
    if needed <= available {
        return Ok(());
    }
    let text = format!("{needed} bytes asked, {available} available, limited by {}", limit());
    Err(Error::new(ErrorKind::NoSpace, text))
}

fn less_headroom(available: u64, total: u64) -> u64 {
    available.saturating_sub((total / 32).min(HEADROOM_MAX))
}

/// `MemTotal` and `MemAvailable` in bytes.
fn meminfo(text: &str) -> Option<(u64, u64)> {
    Some((field(text, "MemTotal:")? << 10, field(text, "MemAvailable:")? << 10))
}

/// The number after the line that starts with exactly this word.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(name)).then(|| words.next()?.parse().ok()).flatten()
    })
}

/// One memory control group that this process is in.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    dir: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Group {
    fn limit_file(&self) -> PathBuf {
        self.dir.join(match self.version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        })
    }

    /// The limit, and what is left of it; `None` where there is no limit.
    fn available(&self) -> Option<(u64, u64)> {
        let number = |name: &Path| fs::read_to_string(name).ok()?.trim().parse::<u64>().ok();
        // Version 2 says "max", version 1 the largest multiple of a page, for none.
        let limit = number(&self.limit_file()).filter(|limit| *limit < 1 << 60)?;
        let (usage, prefix) = match self.version {
            Version::One => ("memory.usage_in_bytes", "total_"),
            Version::Two => ("memory.current", ""),
        };
        let usage = number(&self.dir.join(usage))?;
        // Cached disk pages count as used, yet give way. Shared memory is not among them: it is on the anonymous lists.
        let stat = fs::read_to_string(self.dir.join("memory.stat")).unwrap_or_default();
        let cache = ["inactive_file", "active_file"].iter().filter_map(|name| field(&stat, &format!("{prefix}{name}")));
        Some((limit, limit.saturating_sub(usage.saturating_sub(cache.sum()))))
    }
}

fn memory_groups() -> Vec<Group> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    groups_of(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
}

/// The memory groups of a process, innermost first: each level has a limit of its own.
fn groups_of(cgroup: &str, mountinfo: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for line in cgroup.lines() {
        // `0::/path` (version 2) or `4:memory:/path`.
        let mut parts = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let version = match (number, controllers) {
            ("0", "") => Version::Two,
            _ if controllers.split(',').any(|name| name == "memory") => Version::One,
            _ => continue,
        };
        let Some((root, mount)) = mountinfo.lines().find_map(|line| cgroup_mount(line, version)) else { continue };
        // Where the mount shows only a part of the tree and this process is outside of it, its root is all there is.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        let mut dir = Path::new(mount).join(below);
        loop {
            groups.push(Group { dir: dir.clone(), version });
            if dir == Path::new(mount) || !dir.pop() {
                break;
            }
        }
    }
    groups
}

/// The root within the hierarchy and the mount point, if this line of `mountinfo` mounts the memory controller.
fn cgroup_mount(line: &str, version: Version) -> Option<(&str, &str)> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (root, mount) = (left.next()?, left.next()?);
    let mut right = right.split(' ');
    let matches = match (version, right.next()?) {
        (Version::Two, "cgroup2") => true,
        (Version::One, "cgroup") => right.nth(1)?.split(',').any(|option| option == "memory"),
        _ => false,
    };
    matches.then_some((root, mount))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(dir: &str, version: Version) -> Group {
        Group { dir: dir.into(), version }
    }

    #[test]
    fn groups_of_both_versions_are_found_with_their_parents() {
        let one = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory";
        let two = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
        let cpu = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu";
        let found = groups_of("4:memory:/a/b\n1:cpu:/\n0::/\n", &format!("{cpu}\n{one}\n{two}\n"));
        let memory = "/sys/fs/cgroup/memory";
        assert_eq!(
            found,
            [
                group(&format!("{memory}/a/b"), Version::One),
                group(&format!("{memory}/a"), Version::One),
                group(memory, Version::One),
                group("/sys/fs/cgroup/unified", Version::Two),
            ]
        );
    }

    #[test]
    fn a_container_that_sees_only_its_own_part_of_the_tree() {
        let mount = "30 20 0:26 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate";
        assert_eq!(groups_of("0::/docker/abc\n", mount), [group("/sys/fs/cgroup", Version::Two)]);
        assert_eq!(groups_of("0::/\n", mount), [group("/sys/fs/cgroup", Version::Two)]);
        assert_eq!(groups_of("0::/\n", ""), []);
    }

    #[test]
    fn meminfo_is_read_in_bytes() {
        let text = "MemTotal:       24682416 kB\nMemFree:        1 kB\nMemAvailable:   100 kB\n";
        assert_eq!(meminfo(text), Some((24_682_416 << 10, 100 << 10)));
        assert_eq!(meminfo("MemTotal: x kB"), None);
    }

    #[test]
    fn the_text_says_what_was_asked_what_there_is_and_what_limits() {
        let error = compare(10, 9, || "the moon".into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert_eq!(error.to_string(), "10 bytes asked, 9 available, limited by the moon");
        assert!(compare(9, 9, String::new).is_ok());
    }
}
