//! How many connectors may be welcomed at a time: a permit for each, which goes back when it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The permits that are left.
#[derive(Debug)]
pub(super) struct Permits(Arc<AtomicUsize>);

/// Held by a handshake from its WELCOME on, however it ends; where buses are counted, by the bus after it.
#[derive(Debug)]
pub(in crate::bus) struct Permit(Arc<AtomicUsize>);

impl Permits {
    pub(super) fn new(count: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(count)))
    }

    pub(super) fn are_left(&self) -> bool {
        // Relaxed, here and below: the number alone counts, it orders nothing.
        self.0.load(Ordering::Relaxed) != 0
    }

    /// One of them, if one is left.
    pub(super) fn try_take(&self) -> Option<Permit> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        taken.is_ok().then(|| Permit(self.0.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_permits_are_out_than_there_are_and_each_comes_back() {
        let permits = Permits::new(2);
        let first = permits.try_take().unwrap();
        assert!(permits.are_left());
        let second = permits.try_take().unwrap();
        assert!(!permits.are_left() && permits.try_take().is_none());
        drop(first);
        assert!(permits.are_left());
        let again = permits.try_take().unwrap();
        assert!(permits.try_take().is_none());
        drop((again, second));
        assert!(permits.try_take().is_some());
    }
}
