//! Directories in memory that last as long as what happens in them, also where the runner is told to stop.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ramway_agents::Result;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Those that are there now: a signal ends the process without dropping anything.
static OPEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn open() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // A set is whole whichever thread panicked.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An empty directory of its own, removed when dropped.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// In `/dev/shm`, else where temporary files go.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> Result<Self> {
        let base = Path::new("/dev/shm");
        let mut builder = tempfile::Builder::new();
        builder.prefix("ramway-conformance-");
        // Held over both, so that a signal finds either none or one that is in the set.
        let mut open = open();
        let directory = if base.is_dir() { builder.tempdir_in(base)? } else { builder.tempdir()? };
        open.insert(directory.path().to_owned());
        Ok(Self(directory))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        open().remove(self.0.path());
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP remove the directories before they end the process. Programs that were
/// started end with it (`PR_SET_PDEATHSIG`).
///
/// # Errors
/// The signals cannot be watched.
pub fn remove_when_stopped() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            for directory in &*open() {
                // What a program writes into at this moment may be left; there is nobody to tell.
                let _ = std::fs::remove_dir_all(directory);
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}
