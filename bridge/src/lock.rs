//! Locks whose holders leave nothing half changed, so that a holder that panicked does not take the bridge with it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lock, also where its last holder panicked.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
