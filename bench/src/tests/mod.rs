//! What is carried, and what happens when something goes wrong; never how fast.

mod mechanisms;

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
