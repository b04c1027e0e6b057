//! How other threads tell a server that there is something for it, and when they have to wake it.
//!
//! Who tells stores `has_news`, then loads `sleeps`; who goes to sleep stores `sleeps`, then loads `has_news`. There is a fence between
//! the two on either side, so at least one of them sees what the other has stored. `core/models` shows that both fences and the
//! check are needed, and that a server has to take the announcement back before it takes what was announced.

use crate::sync::{AtomicU32, Ordering, Step, fence, keep};

/// Two words of one server. Every thread may tell; one thread serves.
#[derive(Debug)]
pub struct News {
    /// 1: something was told and is not taken.
    has_news: AtomicU32,
    /// 1: the server sleeps, or is about to.
    sleeps: AtomicU32,
}

impl Default for News {
    fn default() -> Self {
        Self { has_news: AtomicU32::new(0), sleeps: AtomicU32::new(0) }
    }
}

impl News {
    /// Says that there is something, after it was put where the server finds it. True: the server is to be woken. Takes no lock.
    pub fn tell(&self) -> bool {
        // A swap and not a store, so that `take` sees what each of those who told before it has put there, not the last one's
        // alone.
        self.has_news.swap(1, Ordering::AcqRel);
        if keep(Step::TellerFence) {
            fence(Ordering::SeqCst);
        }
        // A load first: a server that is awake is told by a plain store. Of those who tell, one wakes it.
        self.sleeps.load(Ordering::Relaxed) != 0 && self.sleeps.swap(0, Ordering::AcqRel) != 0
    }

    /// Whether something was told.
    #[inline]
    pub fn is_there(&self) -> bool {
        // Relaxed: a hint; `take` and `may_sleep` order.
        self.has_news.load(Ordering::Relaxed) != 0
    }

    /// Takes back what was told, and then what was put there: what is put there later is told again.
    pub fn take<T>(&self, events: impl FnOnce() -> T) -> T {
        // A swap, which reads the last value: what was put there before the last `tell` is seen (Acquire).
        let take_back = || self.has_news.swap(0, Ordering::AcqRel);
        if keep(Step::TakeNewsFirst) {
            take_back();
            events()
        } else {
            let events = events();
            take_back();
            events
        }
    }

    /// Whether the server may sleep; it has to say when it no longer does.
    pub fn may_sleep(&self) -> bool {
        // A swap: one who tells and has seen an earlier sleep takes the word either before this or after it.
        self.sleeps.swap(1, Ordering::AcqRel);
        if keep(Step::ServerFence) {
            fence(Ordering::SeqCst);
        }
        // Relaxed: whatever is there is taken by `take`, which orders.
        let may = !keep(Step::NewsBeforeSleep) || self.has_news.load(Ordering::Relaxed) == 0;
        if !may {
            self.is_awake();
        }
        may
    }

    /// The server no longer sleeps.
    pub fn is_awake(&self) {
        // Relaxed: one that wakes a server which is awake ends its next sleep at once.
        self.sleeps.store(0, Ordering::Relaxed);
    }
}
