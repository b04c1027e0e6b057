//! Models of how a thread's cache is taken away from it: loom runs the real `hot.rs` and `cache.rs` in every schedule (up
//! to a number of preemptions) and with every value that the memory model lets a load return. `make loom` runs them.
//!
//! Each model comes with the steps that it cannot do without: left out, some schedule must fail.
//!
//! What is modelled beside the code: the registry (a mutex, with a shelf for what was taken) and `membarrier`, for which
//! both sides have a sequentially consistent fence. That is what it amounts to: a barrier on the owner's processor falls
//! before its word, after its load or in between, and in each case one of the two sees the other.
#![cfg(loom)]
#![allow(missing_docs)]

mod taken;
mod world;

use ramway_pool::model::{Step, leave_out};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

const RACE: &str = "Causality violation";
const LOST: &str = "lost, or in two places";

/// What is left out is left out for the whole process, so models run one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// What is left out of what is modelled here. Loom runs all threads of a model on the thread that started it.
    static LEFT_OUT: std::cell::Cell<Option<Step>> = const { std::cell::Cell::new(None) };
}

/// Whether a step of what is modelled here is taken.
fn takes(step: Step) -> bool {
    LEFT_OUT.get() != Some(step)
}

fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // An environment variable, where set, explores deeper than the tests do.
    builder.preemption_bound = builder.preemption_bound.or(preemptions);
    builder.check(model);
}

/// No schedule of the model fails.
fn holds(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let _alone = alone();
    explore(preemptions, model);
}

/// With `step` left out some schedule fails, with a message that holds `expected`.
fn fails_without(step: Step, expected: &str, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let _alone = alone();
    leave_out(Some(step));
    LEFT_OUT.set(Some(step));
    let outcome = catch_unwind(AssertUnwindSafe(|| explore(preemptions, model)));
    leave_out(None);
    LEFT_OUT.set(None);
    let Err(panic) = outcome else { panic!("the model holds without {step:?}: it does not show why it is needed") };
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or_default();
    assert!(text.contains(expected), "without {step:?} the model fails, but not with {expected:?}: {text}");
}
