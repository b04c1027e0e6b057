//! The atomics and cells that a thread's cache is made of: the real ones, or loom's when it is being model-checked.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

pub(crate) use std::sync::atomic::Ordering;

/// A step that taking a cache away cannot do without. Each has a model that fails when it is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(loom), allow(dead_code))]
pub enum Step {
    /// The owner's barrier between saying "I am inside" and checking that the cache is still its own.
    OwnerBarrier,
    /// `Release` of "I am outside": what the owner did to the bins is seen by every thread that sees it outside.
    Leave,
    /// The fence of the thread that takes a cache away, between saying so and checking whether the owner is inside.
    TakerFence,
    /// `Acquire` of the owner's word by the thread that waits for it to be outside.
    TakerLoad,
    /// `Release` of the pointer that gives the cache back, empty, and the owner's `Acquire` of it.
    GiveBack,
}

/// The ordering of a step, or `Relaxed` where a model leaves it out.
#[inline(always)]
pub(crate) fn ordered(_step: Step, ordering: Ordering) -> Ordering {
    #[cfg(loom)]
    if model::left_out() == Some(_step) {
        return Ordering::Relaxed;
    }
    ordering
}

/// The owner's half of the asymmetric fence: an order for the compiler, which the taker's `membarrier` turns into one of
/// the processor. In a model, and in the interpreter (miri), both are fences.
#[inline(always)]
pub(crate) fn owner_barrier() {
    #[cfg(not(any(loom, miri)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(miri)]
    std::sync::atomic::fence(Ordering::SeqCst);
    #[cfg(loom)]
    if model::left_out() != Some(Step::OwnerBarrier) {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// A place that one thread at a time touches, by the rules of its holder.
#[derive(Debug)]
pub(crate) struct Place<T>(#[cfg(not(loom))] std::cell::UnsafeCell<T>, #[cfg(loom)] loom::cell::UnsafeCell<T>);

impl<T: Copy> Place<T> {
    pub(crate) fn new(value: T) -> Self {
        #[cfg(not(loom))]
        return Self(std::cell::UnsafeCell::new(value));
        #[cfg(loom)]
        return Self(loom::cell::UnsafeCell::new(value));
    }

    /// # Safety
    /// Nobody writes to it at this time.
    #[inline(always)]
    pub(crate) unsafe fn get(&self) -> T {
        #[cfg(not(loom))]
        // SAFETY: the caller's promise.
        return unsafe { *self.0.get() };
        #[cfg(loom)]
        // SAFETY: the caller's promise, which loom checks.
        return self.0.with(|value| unsafe { *value });
    }

    /// # Safety
    /// Nobody else touches it at this time.
    #[inline(always)]
    pub(crate) unsafe fn set(&self, value: T) {
        #[cfg(not(loom))]
        // SAFETY: the caller's promise.
        unsafe {
            *self.0.get() = value;
        }
        #[cfg(loom)]
        // SAFETY: the caller's promise, which loom checks.
        self.0.with_mut(|place| unsafe { *place = value });
    }
}

/// What a model leaves out, to show that it is needed.
#[cfg(loom)]
pub(crate) mod model {
    use super::Step;
    use std::sync::Mutex;

    static LEFT_OUT: Mutex<Option<Step>> = Mutex::new(None);

    /// Leaves a step out of everything that follows in this process.
    pub fn leave_out(step: Option<Step>) {
        *LEFT_OUT.lock().unwrap() = step;
    }

    pub(super) fn left_out() -> Option<Step> {
        *LEFT_OUT.lock().unwrap()
    }
}
