//! loom's atomics, and the steps that a model leaves out.

#[path = "../../src/sync/step.rs"]
mod step;

pub(crate) use crate::run::keep;
use crate::run::operation;
pub(crate) use loom::sync::atomic::fence;
pub(crate) use std::sync::atomic::Ordering;
pub use step::Step;
pub(crate) use step::ordered;

/// loom's atomics. At each operation a process may be killed.
macro_rules! atomic {
    ($name:ident, $number:ty) => {
        #[derive(Debug)]
        pub struct $name(loom::sync::atomic::$name);

        impl $name {
            pub(crate) fn new(value: $number) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $number {
                operation();
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $number, order: Ordering) {
                operation();
                self.0.store(value, order);
            }

            pub(crate) fn swap(&self, value: $number, order: Ordering) -> $number {
                operation();
                self.0.swap(value, order)
            }

            pub(crate) fn fetch_add(&self, value: $number, order: Ordering) -> $number {
                operation();
                self.0.fetch_add(value, order)
            }

            pub(crate) fn fetch_or(&self, value: $number, order: Ordering) -> $number {
                operation();
                self.0.fetch_or(value, order)
            }

            pub(crate) fn fetch_and(&self, value: $number, order: Ordering) -> $number {
                operation();
                self.0.fetch_and(value, order)
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $number,
                new: $number,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$number, $number> {
                operation();
                self.0.compare_exchange(current, new, success, failure)
            }
        }
    };
}

atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);

/// The waker's compiler barrier is the point where the sleeper's membarrier may strike.
pub(crate) fn compiler_fence(_: Ordering) {
    crate::sys::membarrier::interrupt_point();
}

pub(crate) fn spin_hint() {
    loom::thread::yield_now();
}

/// A topic's data is plain memory here: a read gives what was written last, whatever the protocol has ordered. So it must
/// order what such a read orders: a fence after it comes after the fences before the writes that it saw. Each access is
/// therefore an operation on one word of the model's memory, which reads the last one, and orders nothing by itself.
pub(crate) fn touch_data(address: *const u8) {
    if let Some(touched) = crate::segment::touched(address.addr()) {
        operation();
        touched.fetch_add(1, Ordering::Relaxed);
    }
}

/// A hint, which no model needs.
pub(crate) fn want_to_write(_: *mut u8) {}

/// Likewise.
pub(crate) fn want_to_read(_: *const u8) {}
