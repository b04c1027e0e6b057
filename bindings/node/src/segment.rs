//! What is there: the segments of a directory.

use crate::error::{OrThrow, thrown};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use ramway::survey::{self, CleanOptions, Outcome};
use std::path::{Path, PathBuf};

/// A file of the directory: what it is, or why that cannot be said.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct NativeSegment {
    pub name: String,
    pub path: String,
    /// As `thrown` writes it.
    pub error: Option<String>,
    pub kind: Option<&'static str>,
    pub in_use: Option<bool>,
    pub persistent: Option<bool>,
    pub stale: Option<bool>,
    pub size: Option<f64>,
    pub capacity: Option<f64>,
    pub align: Option<u32>,
    pub used: Option<f64>,
    pub undelivered: Option<f64>,
    pub producer_held: Option<bool>,
    pub consumer_held: Option<bool>,
}

/// What became of a file.
#[napi(object, object_from_js = false)]
pub struct NativeCleaned {
    pub name: String,
    /// "removed", "kept" or "not-ramway".
    pub outcome: Option<&'static str>,
    /// Why it was kept.
    pub reason: Option<String>,
    /// As `thrown` writes it.
    pub error: Option<String>,
}

fn directory(given: Option<String>) -> PathBuf {
    given.map_or_else(survey::directory, PathBuf::from)
}

fn listed(dir: &Path, listed: survey::Listed) -> NativeSegment {
    let path = dir.join(&listed.name).to_string_lossy().into_owned();
    let name = listed.name.to_string_lossy().into_owned();
    let mut shown = NativeSegment { name, path, ..Default::default() };
    let segment = match listed.segment {
        Ok(segment) => segment,
        Err(e) => {
            shown.error = Some(thrown(&e).reason.clone());
            return shown;
        }
    };
    shown.kind = Some(segment.kind.name());
    shown.in_use = Some(segment.in_use);
    shown.persistent = Some(segment.persistent);
    shown.stale = Some(segment.is_stale());
    shown.size = Some(segment.size as f64);
    shown.producer_held = Some(segment.producer_held);
    shown.consumer_held = Some(segment.consumer_held);
    if let Some(ring) = &segment.rings[0] {
        shown.capacity = Some(ring.capacity as f64);
        shown.align = Some(ring.align);
        // Positions of a ring that moves are a snapshot, and of a damaged one anything.
        shown.used = Some(ring.tail.wrapping_sub(ring.head).min(ring.capacity) as f64);
        shown.undelivered = ring.undelivered.as_ref().map(|left| left.messages as f64);
    } else if let Some(region) = &segment.region {
        shown.capacity = Some(region.len as f64);
    } else if let Some(topic) = &segment.topic {
        shown.capacity = Some(topic.capacity as f64);
        shown.align = Some(topic.align);
    }
    shown
}

/// The segments of a directory, by default the one that names stand in.
#[napi]
pub fn ls(given: Option<String>) -> Result<Vec<NativeSegment>> {
    let dir = directory(given);
    Ok(survey::ls(&dir).or_throw()?.into_iter().map(|entry| listed(&dir, entry)).collect())
}

/// Removes one that nobody uses.
#[napi]
pub fn unlink(name: String) -> Result<()> {
    survey::unlink(name).or_throw()
}

/// Removes what nobody uses, and nobody could want unless `undelivered`; or only says so.
#[napi]
pub fn clean(given: Option<String>, undelivered: bool, dry_run: bool) -> Result<Vec<NativeCleaned>> {
    let options = CleanOptions { dry_run, undelivered };
    let outcomes = survey::clean(&directory(given), &options).or_throw()?;
    let cleaned = outcomes.into_iter().map(|(name, outcome)| {
        let name = name.to_string_lossy().into_owned();
        let (outcome, reason, error) = match outcome {
            Ok(Outcome::Removed) => (Some("removed"), None, None),
            Ok(Outcome::Kept(why)) => (Some("kept"), Some(why), None),
            Ok(Outcome::NotRamway) => (Some("not-ramway"), None, None),
            Err(e) => (None, None, Some(thrown(&e).reason.clone())),
        };
        NativeCleaned { name, outcome, reason, error }
    });
    Ok(cleaned.collect())
}
