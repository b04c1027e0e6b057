//! Who is attached: what `/proc` shows of other processes. Reads only; a process that ends meanwhile is left out.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A lock on a segment's lock file, and the process that has that file open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// The program's name.
    pub command: String,
    /// Byte 0: attached; 1: producer or publisher; 2: consumer; from 16 on: a slot of a topic (see `docs/ABI.md`).
    pub byte: u64,
    /// Whoever may read a file can take a shared lock on it.
    pub exclusive: bool,
}

/// A process that has a bus's memory open or mapped.
#[derive(Clone, Debug)]
pub struct BusUser {
    pub pid: u32,
    pub command: String,
    /// `/proc/PID/fd/N`, unless it has the memory only mapped.
    pub descriptor: Option<PathBuf>,
}

/// A bus, known by its memory.
#[derive(Clone, Debug)]
pub struct LiveBus {
    /// The name that the listener was bound to.
    pub name: String,
    pub users: Vec<BusUser>,
}

/// All processes, as they were when they were read.
#[derive(Debug, Default)]
pub struct Processes {
    locks: HashMap<FileId, Vec<Holder>>,
    /// By their memory.
    buses: HashMap<FileId, LiveBus>,
    /// Processes whose descriptors may not be read.
    pub hidden: usize,
}

/// Device (major, minor) and inode, as `/proc` writes them.
type FileId = (u32, u32, u64);

const BUS: &str = "/memfd:ramway-bus:";

impl Processes {
    /// Reads all processes that this one may read.
    pub fn read() -> Self {
        let mut found = Self::default();
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = process.file_name();
            if let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) {
                found.process(pid, &process.path());
            }
        }
        for holders in found.locks.values_mut() {
            holders.sort_by_key(|holder| (holder.byte, holder.pid));
            holders.dedup();
        }
        found
    }

    fn process(&mut self, pid: u32, path: &Path) {
        let Ok(descriptors) = fs::read_dir(path.join("fdinfo")) else {
            self.hidden += usize::from(path.exists());
            return;
        };
        // Asked for only where it is needed: most processes have nothing to do with Ramway.
        let command = || fs::read_to_string(path.join("comm")).unwrap_or_default().trim().to_owned();
        for descriptor in descriptors.flatten() {
            let info = fs::read_to_string(descriptor.path()).unwrap_or_default();
            for (file, byte, exclusive) in info.lines().filter_map(lock_line) {
                let holder = Holder { pid, command: command(), byte, exclusive };
                self.locks.entry(file).or_default().push(holder);
            }
            let link = path.join("fd").join(descriptor.file_name());
            let target = fs::read_link(&link).unwrap_or_default();
            let Some(name) = target.to_str().and_then(|target| target.strip_prefix(BUS)) else { continue };
            let Ok(memory) = fs::metadata(&link) else { continue };
            let file = (rustix::fs::major(memory.dev()), rustix::fs::minor(memory.dev()), memory.ino());
            self.bus(file, name, BusUser { pid, command: command(), descriptor: Some(link) });
        }
        // A process may close the descriptor once the memory is mapped.
        for line in fs::read_to_string(path.join("maps")).unwrap_or_default().lines() {
            if let Some((file, name)) = map_line(line) {
                self.bus(file, name, BusUser { pid, command: command(), descriptor: None });
            }
        }
    }

    fn bus(&mut self, file: FileId, name: &str, user: BusUser) {
        let name = name.strip_suffix(" (deleted)").unwrap_or(name);
        let bus = self.buses.entry(file).or_insert_with(|| LiveBus { name: name.to_owned(), users: Vec::new() });
        if bus.users.iter().all(|known| known.pid != user.pid) {
            bus.users.push(user);
        }
    }

    /// Who holds locks on this file, by byte and pid.
    pub fn holders(&self, dev: u64, ino: u64) -> &[Holder] {
        let key = (rustix::fs::major(dev), rustix::fs::minor(dev), ino);
        self.locks.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The buses that somebody has open, by name.
    pub fn buses(&self) -> Vec<&LiveBus> {
        let mut buses: Vec<_> = self.buses.values().collect();
        buses.sort_by(|a, b| (&a.name, a.users.first().map(|u| u.pid)).cmp(&(&b.name, b.users.first().map(|u| u.pid))));
        buses
    }
}

/// The file and the first byte of an open-file-description lock, and whether it is exclusive, of a line such as
/// `lock:\t1: OFDLCK ADVISORY  WRITE -1 00:1b:6 1 1`.
fn lock_line(line: &str) -> Option<(FileId, u64, bool)> {
    let mut fields = line.strip_prefix("lock:")?.split_whitespace();
    if fields.nth(1)? != "OFDLCK" {
        return None;
    }
    let exclusive = fields.nth(1)? == "WRITE";
    let mut file = fields.nth(1)?.split(':');
    let major = u32::from_str_radix(file.next()?, 16).ok()?;
    let minor = u32::from_str_radix(file.next()?, 16).ok()?;
    let inode = file.next()?.parse().ok()?;
    Some(((major, minor, inode), fields.next()?.parse().ok()?, exclusive))
}

/// The memory and the name of a bus, of a line such as
/// `7f0000000000-7f0000001000 rw-s 00000000 00:01 2050   /memfd:ramway-bus:echo (deleted)`.
fn map_line(line: &str) -> Option<(FileId, &str)> {
    let (fields, name) = line.split_once(BUS)?;
    let mut fields = fields.split_whitespace().skip(3);
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    Some(((device.0, device.1, fields.next()?.parse().ok()?), name))
}

#[cfg(test)]
mod tests {
    use super::{lock_line, map_line};

    #[test]
    fn map_lines_are_read() {
        let line = "7f0000000000-7f0000001000 rw-s 00000000 00:01 2050    /memfd:ramway-bus:a b (deleted)";
        assert_eq!(map_line(line), Some(((0, 1, 2050), "a b (deleted)")));
        assert_eq!(map_line("7f0000000000-7f0000001000 rw-s 00000000 00:01 2050 /memfd:other (deleted)"), None);
    }

    #[test]
    fn lock_lines_are_read() {
        let line = "lock:\t1: OFDLCK ADVISORY  WRITE -1 00:1b:6 1 1";
        assert_eq!(lock_line(line), Some(((0, 0x1b, 6), 1, true)));
        let line = "lock:\t1: OFDLCK ADVISORY  READ -1 08:01:77 0 0";
        assert_eq!(lock_line(line), Some(((8, 1, 77), 0, false)));
        assert_eq!(lock_line("lock:\t1: POSIX  ADVISORY  WRITE 12 00:1b:6 1 1"), None);
        assert_eq!(lock_line("pos:\t0"), None);
        assert_eq!(lock_line("lock:\t1: OFDLCK"), None);
    }
}
