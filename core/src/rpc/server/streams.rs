//! Handlers whose reply is a stream: an iterator, which is asked for its next element only when the caller has room for it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::ledger::Reply;
use super::request::Fault;

/// An iterator, whatever its elements are.
pub(super) trait Elements: Send {
    /// Gives the next element's bytes to `give`; `None` at the end.
    fn next(&mut self, give: &mut dyn FnMut(&[u8])) -> Option<Result<(), Fault>>;
}

pub(super) struct Of<I>(pub(super) I);

impl<I, T> Elements for Of<I>
where
    I: Iterator<Item = Result<T, Fault>> + Send,
    T: AsRef<[u8]>,
{
    fn next(&mut self, give: &mut dyn FnMut(&[u8])) -> Option<Result<(), Fault>> {
        Some(self.0.next()?.map(|element| give(element.as_ref())))
    }
}

/// What an iterator came to.
pub(super) enum Step {
    Element,
    Complete,
    /// The final REPLY.
    Failed(Reply),
}

/// Asks for the next element, which `give` gets.
pub(super) fn step(elements: &mut dyn Elements, give: &mut dyn FnMut(&[u8])) -> Step {
    match guarded(|| elements.next(give)) {
        Ok(Some(Ok(()))) => Step::Element,
        Ok(None) => Step::Complete,
        Ok(Some(Err(fault))) => Step::Failed(Reply::fault(fault, Vec::new())),
        Err(reply) => Step::Failed(reply),
    }
}

/// Runs a handler. A panic is the final REPLY that it becomes.
#[inline]
pub(super) fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, Reply> {
    // What the handler left half changed is its own: it is not called by this again if it does not want to be.
    catch_unwind(AssertUnwindSafe(run)).map_err(failed)
}

#[cold]
fn failed(panic: Box<dyn Any + Send>) -> Reply {
    Reply::failed(words(&*panic))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).into());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "the handler panicked".into())
}
