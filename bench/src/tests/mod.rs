//! What is carried, and what happens when something goes wrong; never how fast.

#[cfg(feature = "command")]
mod agents;
mod faults;
mod loops;
mod mechanisms;
mod pools;
mod runs;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// How this executable is made to be a measuring process: see [`worker`].
pub(crate) const WORKER: [&str; 3] = ["--exact", "tests::worker", "--nocapture"];

/// Not a test of its own: the measuring processes of the others run it.
#[test]
fn worker() {
    if let Some(code) = crate::child_main_builtin() {
        std::process::exit(code);
    }
}

/// Two processes that poll on two processors leave no room for two more.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An empty directory of this test's own.
fn directory(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("ramway-test-bench-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&path).expect("create");
    path
}

#[global_allocator]
static ALLOCATOR: crate::CountingAllocator = crate::CountingAllocator;
