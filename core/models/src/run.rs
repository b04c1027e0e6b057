//! Running a model, whole or with a step of the protocol left out.

use crate::sync::Step;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The steps that are left out. Loom runs all threads of a model on the thread that started it.
    static LEFT_OUT: Cell<&'static [Step]> = const { Cell::new(&[]) };
}

/// Whether a step is taken: for `sync`.
pub(crate) fn keep(step: Step) -> bool {
    !LEFT_OUT.get().contains(&step)
}

/// Explores a model with up to this many preemptions a schedule: every schedule if `None`.
fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // An environment variable, where set, explores deeper than the tests do.
    builder.preemption_bound = builder.preemption_bound.or(preemptions);
    builder.check(model);
}

/// No schedule of the model fails.
pub fn holds(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    explore(preemptions, model);
}

/// With `steps` left out some schedule fails, with a message that holds `expected`.
pub fn fails_without(
    steps: &'static [Step],
    expected: &str,
    preemptions: Option<usize>,
    model: impl Fn() + Send + Sync + 'static,
) {
    LEFT_OUT.set(steps);
    let outcome = catch_unwind(AssertUnwindSafe(|| explore(preemptions, model)));
    LEFT_OUT.set(&[]);
    let Err(panic) = outcome else { panic!("the model holds without {steps:?}: it does not show why they are needed") };
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or_default();
    assert!(text.contains(expected), "without {steps:?} the model fails, but not with {expected:?}: {text}");
}
