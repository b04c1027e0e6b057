//! Running a model, whole or with a step of the protocol left out.

use crate::sync::Step;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

thread_local! {
    /// The steps that are left out. Loom runs all threads of a model on the thread that started it.
    static LEFT_OUT: Cell<&'static [Step]> = const { Cell::new(&[]) };
    /// Some thread of this execution is mortal: a shortcut for the models without one.
    static ANY_MORTAL: Cell<bool> = const { Cell::new(false) };
    /// Some mortal process of this exploration was killed before its end.
    static KILLED: Cell<bool> = const { Cell::new(false) };
}

loom::thread_local! {
    /// How many operations on shared memory this process may still make, if it is mortal.
    static LEFT: Cell<Option<u32>> = Cell::new(None);
}

/// What a killed process unwinds with.
struct Killed;

/// A process that is killed after so many operations on shared memory. Its destructors must do nothing then.
#[derive(Clone, Copy, Debug)]
pub struct Mortal(u32);

impl Mortal {
    /// Runs `body`; false: it was killed in the middle.
    pub fn run(self, body: impl FnOnce()) -> bool {
        ANY_MORTAL.set(true);
        LEFT.with(|left| left.set(Some(self.0)));
        let outcome = catch_unwind(AssertUnwindSafe(body));
        LEFT.with(|left| left.set(None));
        match outcome {
            Ok(()) => true,
            Err(killed) if killed.is::<Killed>() => {
                KILLED.set(true);
                false
            }
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// Before each operation on shared memory.
pub(crate) fn operation() {
    if ANY_MORTAL.get() && !std::thread::panicking() {
        let left = LEFT.with(Cell::get);
        if let Some(left) = left {
            LEFT.with(|cell| cell.set(left.checked_sub(1)));
            if left == 0 {
                resume_unwind(Box::new(Killed));
            }
        }
    }
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
    // A topic's join makes many operations, and what is done before the threads begin counts too.
    builder.max_branches = 20_000;
    builder.check(move || {
        ANY_MORTAL.set(false);
        model();
    });
}

/// No schedule of the model fails.
pub fn holds(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    explore(preemptions, model);
}

/// No schedule of the model fails, wherever its mortal process is killed: before its first operation on shared memory,
/// before its second, and so on to its end.
pub fn at_each_step(preemptions: Option<usize>, model: impl Fn(Mortal) + Clone + Send + Sync + 'static) {
    let mut steps = 0;
    loop {
        KILLED.set(false);
        let model = model.clone();
        explore(preemptions, move || model(Mortal(steps)));
        if !KILLED.get() {
            break;
        }
        steps += 1;
    }
    assert!(steps > 0, "nothing was ever killed");
}

/// With `steps` left out some schedule fails, with a message that holds `expected`, or one of several with `|` between them.
pub fn fails_without(
    steps: &'static [Step],
    expected: &str,
    preemptions: Option<usize>,
    model: impl Fn() + Send + Sync + 'static,
) {
    let failure = failure_without(steps, || explore(preemptions, model));
    let Some(text) = failure else { panic!("the model holds without {steps:?}: it does not show why they are needed") };
    assert!(
        expected.split('|').any(|one| text.contains(one)),
        "without {steps:?} the model fails, but not with {expected:?}: {text}"
    );
}

/// With `steps` left out some schedule fails for some moment at which the mortal process is killed.
pub fn fails_without_at_some_step(
    steps: &'static [Step],
    expected: &str,
    preemptions: Option<usize>,
    model: impl Fn(Mortal) + Clone + Send + Sync + 'static,
) {
    let failure = failure_without(steps, || at_each_step(preemptions, model));
    let Some(text) = failure else { panic!("the model holds without {steps:?}: it does not show why they are needed") };
    assert!(
        expected.split('|').any(|one| text.contains(one)),
        "without {steps:?} the model fails, but not with {expected:?}: {text}"
    );
}

/// What `explore` fails with, with `steps` left out.
fn failure_without(steps: &'static [Step], explore: impl FnOnce()) -> Option<String> {
    LEFT_OUT.set(steps);
    let outcome = catch_unwind(AssertUnwindSafe(explore));
    LEFT_OUT.set(&[]);
    let panic = outcome.err()?;
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Some(text.unwrap_or_default().to_owned())
}
