//! What a bridge keeps beside the segments, in the folder `.bridge` of the Ramway directory: who this machine is, and for each
//! segment that it made how the near numbers and the local ones correspond. It lives as long as the segments do.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ramway::survey::Segment;

fn folder() -> io::Result<PathBuf> {
    let folder = ramway::survey::directory().join(".bridge");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Writes a file that is there whole or not at all.
fn write(name: &str, text: &str) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let folder = folder()?;
    // Relaxed: only different numbers are asked for.
    let staged = folder.join(format!(".{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    fs::write(&staged, text)?;
    fs::rename(staged, folder.join(name))
}

/// A number that nobody else has.
#[must_use]
pub fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one((std::process::id(), SystemTime::now())).max(1)
}

/// Milliseconds since 1970, with room for a count below.
#[must_use]
pub fn first_attempt() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_millis() as u64) << 20
}

/// The number of this machine, more precisely of its Ramway directory; the first to ask makes it.
///
/// # Errors
/// If the folder cannot be written.
pub fn machine() -> io::Result<u64> {
    let path = folder()?.join("machine");
    loop {
        match fs::read_to_string(&path) {
            Ok(text) => {
                if let Some(id) = u64::from_str_radix(text.trim(), 16).ok().filter(|id| *id != 0) {
                    return Ok(id);
                }
                fs::remove_file(&path)?;
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        let staged = folder()?.join(format!(".machine-{}", std::process::id()));
        fs::write(&staged, format!("{:016x}\n", random()))?;
        // A link fails where another process was first.
        let linked = fs::hard_link(&staged, &path);
        fs::remove_file(&staged)?;
        match linked {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
    }
}

/// The number of a segment: another one of the same name has another.
#[must_use]
pub fn identity(segment: &Segment) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let numbers = [segment.created_ns, segment.inode, segment.device];
    for byte in numbers.iter().flat_map(|n| n.to_le_bytes()).chain(segment.boot_id) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash.max(1)
}

/// How the numbers of a near segment and of the local one that an import made of it correspond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// The near segment.
    pub stream: u64,
    /// The local segment.
    pub segment: u64,
    /// The local position less the near one, wrapping.
    pub delta: u64,
    /// The epoch in which the bridge was the local sender.
    pub epoch: u32,
}

impl Ledger {
    /// What was written of `kind` and `name` last.
    #[must_use]
    pub fn read(kind: &str, name: &str) -> Option<Self> {
        let text = fs::read_to_string(folder().ok()?.join(format!("{kind}-{name}"))).ok()?;
        let mut numbers = text.split_whitespace().map(|number| u64::from_str_radix(number, 16).ok());
        let mut next = || numbers.next().flatten();
        Some(Self { stream: next()?, segment: next()?, delta: next()?, epoch: u32::try_from(next()?).ok()? })
    }

    /// Writes it, before anything is committed by it.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn write(&self, kind: &str, name: &str) -> io::Result<()> {
        let Self { stream, segment, delta, epoch } = self;
        write(&format!("{kind}-{name}"), &format!("{stream:x} {segment:x} {delta:x} {epoch:x}\n"))
    }
}

/// Whether an import made this segment: it is never exported again, so that no message goes round in a circle.
#[must_use]
pub fn is_imported(kind: &str, name: &str, segment: &Segment) -> bool {
    Ledger::read(kind, name).is_some_and(|ledger| ledger.segment == identity(segment))
}

/// Writes down that the end of a segment's sender was passed on.
///
/// # Errors
/// If the folder cannot be written.
pub fn finished(kind: &str, name: &str, stream: u64, epoch: u32) -> io::Result<()> {
    Ledger { stream, segment: 0, delta: 0, epoch }.write(&format!("ended-{kind}"), name)
}

/// Whether that was so.
#[must_use]
pub fn is_finished(kind: &str, name: &str, stream: u64, epoch: u32) -> bool {
    Ledger::read(&format!("ended-{kind}"), name).is_some_and(|ledger| ledger.stream == stream && ledger.epoch == epoch)
}
