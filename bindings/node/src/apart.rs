//! When and where memory is unmapped that JavaScript had buffers over. The runtimes finalize a buffer only in a later
//! iteration of their loop, and a program that opens and closes in one iteration must not run out of mappings
//! (`vm.max_map_count`).
//!
//! By the time of a close every buffer is detached, so nothing of JavaScript's reaches the memory. But a view may have been
//! given to a thread of the runtime's (`fs.write`, `zlib`) and not awaited: where any was ever handed out, the memory is left to the
//! buffers' finalizers, and only the last few that were closed are.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

/// Bytes from which on a thread is worth it: giving pages back takes about 0.1 ms a megabyte.
const MANY: usize = 4 << 20;
/// Threads at once that unmap.
const THREADS: usize = 16;
/// Closed handles whose memory is left to finalizers.
const LEFT: usize = 64;

static RUNNING: AtomicUsize = AtomicUsize::new(0);
static WAITING: Mutex<VecDeque<Weak<dyn GiveBack>>> = Mutex::new(VecDeque::new());

/// Counts those that unmap.
struct Running {
    before: usize,
}

impl Running {
    fn new() -> Self {
        // Relaxed: a count that orders nothing.
        Self { before: RUNNING.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Relaxed: as above.
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

trait GiveBack: Send + Sync {
    fn give_back(&self);
}

/// What has memory mapped, until it is given back or dropped. Neither takes longer than making a thread.
pub(crate) struct Apart<T: Send + 'static> {
    mapped: Mutex<Option<T>>,
    bytes: usize,
}

impl<T: Send + 'static> Apart<T> {
    pub(crate) fn new(mapped: T, bytes: usize) -> Arc<Self> {
        Arc::new(Self { mapped: Mutex::new(Some(mapped)), bytes })
    }

    /// `None` once it was given back.
    pub(crate) fn with<R>(&self, run: impl FnOnce(&T) -> R) -> Option<R> {
        self.lock().as_ref().map(run)
    }

    /// Unmaps it, although buffers that are detached still hold it: now, or, if a buffer was `viewed`, in a while.
    pub(crate) fn close(self: &Arc<Self>, viewed: bool) {
        if !viewed {
            return self.give_back();
        }
        let this: Weak<Self> = Arc::downgrade(self);
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(this);
        let oldest = if waiting.len() > LEFT { waiting.pop_front() } else { None };
        // Unmapped without the lock.
        drop(waiting);
        if let Some(oldest) = oldest.and_then(|oldest| oldest.upgrade()) {
            oldest.give_back();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> GiveBack for Apart<T> {
    fn give_back(&self) {
        let Some(mapped) = self.lock().take() else { return };
        if self.bytes < MANY {
            return drop(mapped);
        }
        let running = Running::new();
        if running.before < THREADS {
            let work = move || drop((mapped, running));
            // Without a thread it is dropped here, with the closure.
            let _ = thread::Builder::new().name("ramway-unmap".to_owned()).spawn(work);
        }
    }
}

impl<T: Send + 'static> Drop for Apart<T> {
    fn drop(&mut self) {
        self.give_back();
    }
}
