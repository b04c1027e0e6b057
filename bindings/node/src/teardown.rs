//! Handles that an environment leaves behind are closed at its end. Node and Bun finalize them then anyway; Deno
//! finalizes nothing when a worker ends, whose names and roles would stay taken as long as the process lives.

use crate::handle::Shared;
use napi::bindgen_prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

trait Close: Send + Sync {
    fn close(&self);
}

impl<T: Send + 'static> Close for Shared<T> {
    fn close(&self) {
        drop(self.take());
    }
}

/// By the environment's address, which is not used again before its hook has run.
type Left = HashMap<usize, Vec<Weak<dyn Close>>>;

static LEFT: Mutex<Option<Left>> = Mutex::new(None);

fn left() -> MutexGuard<'static, Option<Left>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the handle closed with the environment, if it is still there then.
pub(crate) fn close_with<T: Send + 'static>(env: &Env, handle: &Arc<Shared<T>>) -> Result<()> {
    let key = env.raw().addr();
    let mut left = left();
    let all = left.get_or_insert_default();
    if !all.contains_key(&key) {
        env.add_env_cleanup_hook(key, close_all)?;
    }
    let handles = all.entry(key).or_default();
    if handles.len() == handles.capacity() {
        handles.retain(|handle| handle.strong_count() > 0);
    }
    let handle: Weak<Shared<T>> = Arc::downgrade(handle);
    handles.push(handle);
    Ok(())
}

fn close_all(key: usize) {
    // Closed without the lock.
    let handles = left().as_mut().and_then(|all| all.remove(&key)).unwrap_or_default();
    for handle in handles {
        if let Some(handle) = handle.upgrade() {
            handle.close();
        }
    }
}
