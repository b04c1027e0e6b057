//! Core handles, until they are closed.

use crate::error::refuse;
use napi::bindgen_prelude::*;
use ramway::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A core handle that several objects share. Used by the JavaScript thread alone; the lock is there for the types.
pub(crate) struct Shared<T> {
    core: Mutex<Option<T>>,
    what: &'static str,
}

impl<T: Send + 'static> Shared<T> {
    pub(crate) fn new(core: T, what: &'static str) -> Arc<Self> {
        Arc::new(Self { core: Mutex::new(Some(core)), what })
    }

    /// The handle; an error once it is closed.
    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        match &mut *self.lock() {
            Some(core) => run(core),
            None => Err(refuse(ErrorKind::Detached, format_args!("this {} is closed", self.what))),
        }
    }

    /// The handle itself, once.
    pub(crate) fn take(&self) -> Option<T> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
