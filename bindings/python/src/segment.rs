//! What is in the Ramway directory: `ramway.ls`, `unlink` and `clean`.

use crate::args::Name;
use crate::errors::{OrRaise, raise};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use ramway::layout::Kind;
use ramway::survey::{self, CleanOptions, Outcome, Segment, Subscriber};
use std::path::PathBuf;

fn directory(given: Option<Name>) -> PathBuf {
    given.map_or_else(survey::directory, |name| name.0)
}

/// The segments of a directory, as keyword arguments of `ramway.Segment`.
#[pyfunction]
pub(crate) fn _ls<'py>(py: Python<'py>, directory_name: Option<Name>) -> PyResult<Bound<'py, PyList>> {
    let place = directory(directory_name);
    let list = PyList::empty(py);
    for found in py.detach(|| survey::ls(&place)).or_raise(py)? {
        let record = PyDict::new(py);
        record.set_item("name", found.name.to_string_lossy())?;
        record.set_item("path", place.join(&found.name).to_string_lossy())?;
        match found.segment {
            Ok(segment) => fill(&record, &segment)?,
            Err(e) => record.set_item("error", raise(py, e).into_value(py))?,
        }
        list.append(record)?;
    }
    Ok(list)
}

fn fill(record: &Bound<'_, PyDict>, segment: &Segment) -> PyResult<()> {
    record.set_item("kind", segment.kind.name())?;
    record.set_item("in_use", segment.in_use)?;
    record.set_item("persistent", segment.persistent)?;
    record.set_item("stale", segment.is_stale())?;
    record.set_item("size", segment.size)?;
    record.set_item("producer_held", segment.producer_held)?;
    record.set_item("consumer_held", segment.consumer_held)?;
    match (&segment.rings[0], &segment.region) {
        (Some(ring), _) if segment.kind == Kind::Ring => {
            record.set_item("capacity", ring.capacity)?;
            record.set_item("align", ring.align)?;
            // Unchecked in the file: a damaged one can say anything.
            record.set_item("used", ring.tail.wrapping_sub(ring.head).min(ring.capacity))?;
            record.set_item("undelivered", ring.undelivered.as_ref().map(|undelivered| undelivered.messages))
        }
        (_, Some(region)) => record.set_item("capacity", region.len),
        _ => {
            let Some(topic) = &segment.topic else { return Ok(()) };
            record.set_item("capacity", topic.capacity)?;
            record.set_item("align", topic.align)?;
            record.set_item("seq", topic.newest.map_or(0, |newest| newest.seq))?;
            let subscribers = topic.subscribers.iter().map(|found| subscriber(record.py(), found));
            record.set_item("subscribers", subscribers.collect::<PyResult<Vec<_>>>()?)
        }
    }
}

/// As a `ramway.SubscriberInfo`.
fn subscriber<'py>(py: Python<'py>, found: &Subscriber) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("ramway._topic")?;
    let is_reliable = found.gating || found.durable || found.ejected;
    let lag = match found.lag_messages.filter(|_| is_reliable) {
        Some(messages) => Some(module.getattr("Lag")?.call1((found.lag_bytes, messages))?),
        None => None,
    };
    let policy = if found.latest { "latest" } else { "lossy" };
    let record = PyDict::new(py);
    record.set_item("slot", found.slot)?;
    record.set_item("policy", if is_reliable { "reliable" } else { policy })?;
    record.set_item("label", found.label.as_deref())?;
    record.set_item("durable", found.durable)?;
    record.set_item("alive", found.held)?;
    record.set_item("ejected", found.ejected)?;
    record.set_item("epoch", found.epoch)?;
    record.set_item("lag", lag)?;
    record.set_item("lost", found.lost)?;
    record.set_item("blocks_for", py.None())?;
    module.getattr("SubscriberInfo")?.call((), Some(&record))
}

/// `ramway.unlink`.
#[pyfunction]
pub(crate) fn _unlink(py: Python<'_>, name: Name) -> PyResult<()> {
    py.detach(|| survey::unlink(&name.0)).or_raise(py)
}

/// Names, and what became of each: whether it was removed, why not, or the error.
#[pyfunction]
pub(crate) fn _clean<'py>(
    py: Python<'py>,
    directory_name: Option<Name>,
    undelivered: bool,
    dry_run: bool,
) -> PyResult<Bound<'py, PyList>> {
    let place = directory(directory_name);
    let options = CleanOptions { dry_run, undelivered };
    let list = PyList::empty(py);
    for (name, outcome) in py.detach(|| survey::clean(&place, &options)).or_raise(py)? {
        let (removed, kept, failed) = match outcome {
            Ok(Outcome::Removed) => (true, None, None),
            Ok(Outcome::Kept(why)) => (false, Some(why), None),
            Ok(Outcome::NotRamway) => (false, Some("not a Ramway segment".to_owned()), None),
            Err(e) => (false, None, Some(raise(py, e).into_value(py))),
        };
        list.append((name.to_string_lossy(), removed, kept, failed))?;
    }
    Ok(list)
}
