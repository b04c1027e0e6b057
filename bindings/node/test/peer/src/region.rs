//! What the other process does with a region.

use std::str::SplitAsciiWhitespace;
use std::sync::atomic::Ordering;

use crate::memory::{from_hex, to_hex};
use crate::{Refused, WAIT_MAX, number, refused};
use ramway::Region;

pub(crate) fn open(name: &str) -> Result<Region, Refused> {
    Region::builder().timeout(WAIT_MAX).open(name).map_err(|cause| refused(&cause, 0))
}

/// One command, after the word `region`.
pub(crate) fn command(region: &Region, words: &mut SplitAsciiWhitespace<'_>) -> Result<String, Refused> {
    let failed = |cause| refused(&cause, 0);
    Ok(match words.next().unwrap_or("") {
        "add" => {
            let (offset, count): (u64, u32) = (number(words.next())?, number(words.next())?);
            let word = region.atomic_u32(offset).map_err(failed)?;
            for _ in 0..count {
                // Relaxed: only the sum is looked at.
                word.fetch_add(1, Ordering::Relaxed);
            }
            "added".to_owned()
        }
        "store" => {
            let offset: u64 = number(words.next())?;
            let bytes = words.next().and_then(from_hex).ok_or("not hexadecimal")?;
            region.write_at(offset, &bytes).map_err(failed)?;
            "stored".to_owned()
        }
        "load" => {
            let (offset, len): (u64, usize) = (number(words.next())?, number(words.next())?);
            let mut bytes = vec![0; len];
            region.read_at(offset, &mut bytes).map_err(failed)?;
            format!("bytes hex={}", to_hex(&bytes))
        }
        "notify" => {
            region.notify().map_err(failed)?;
            "notified".to_owned()
        }
        "wait" => match region.wait(Some(WAIT_MAX)).map_err(failed)? {
            true => "awaited".to_owned(),
            false => return Err("nobody notified".into()),
        },
        _ => return Err("an unknown command for a region".into()),
    })
}
