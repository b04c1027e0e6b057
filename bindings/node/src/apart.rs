//! Memory that is unmapped apart from the event loop: giving pages back takes about 0.1 ms a megabyte.

use std::ops::Deref;
use std::thread;

/// Bytes from which on a thread is worth it.
const MANY: usize = 4 << 20;

/// What has memory mapped. Dropping it takes no longer than making a thread.
pub(crate) struct Apart<T: Send + 'static> {
    /// `None` only while it is dropped.
    mapped: Option<T>,
    bytes: usize,
}

impl<T: Send + 'static> Apart<T> {
    pub(crate) fn new(mapped: T, bytes: usize) -> Self {
        Self { mapped: Some(mapped), bytes }
    }
}

impl<T: Send + 'static> Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.mapped.as_ref().expect("there until it is dropped")
    }
}

impl<T: Send + 'static> Drop for Apart<T> {
    fn drop(&mut self) {
        let mapped = self.mapped.take();
        if self.bytes >= MANY {
            // Without a thread it is dropped here, with the closure.
            let _ = thread::Builder::new().name("ramway-unmap".to_owned()).spawn(move || drop(mapped));
        }
    }
}
