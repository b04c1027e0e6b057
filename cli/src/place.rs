//! Where named segments live.

use std::path::PathBuf;

/// `RAMWAY_DIR`, or the default directory of this user. It need not exist.
pub fn directory() -> PathBuf {
    match std::env::var_os("RAMWAY_DIR") {
        Some(path) if !path.is_empty() => path.into(),
        _ => format!("/dev/shm/ramway-{}", rustix::process::geteuid().as_raw()).into(),
    }
}
