//! A region as a shared configuration that many processes read and one writes.
//!
//! The region holds a version and two slots. A writer fills the slot that is not current, then stores the next version,
//! then notifies. A reader copies the current slot and takes it only if the version is still the same: the writer
//! comes back to that slot only after it has published the other one. So nobody sees half a change, and a writer that
//! is killed in the middle of one has changed nothing.

use ramway::Region;
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{Ordering, fence};

/// Version (u64), then slot 0 and slot 1: length (u64), text.
const SLOTS: [u64; 2] = [64, 64 + SLOT];
const SLOT: u64 = 32 << 10;
const USAGE: &str = "usage: config set REGION TEXT | config show REGION | config watch REGION UNTIL-TEXT";

fn main() -> ExitCode {
    ramway_examples::run("config", |arguments| match arguments {
        ["set", name, text] => set(&open(name)?, text.as_bytes()),
        ["show", name] => {
            let (version, text) = read(&open(name)?)?;
            println!("{version}: {text}");
            Ok(())
        }
        ["watch", name, last] => watch(&open(name)?, last),
        _ => Err(USAGE.into()),
    })
}

/// Persistent: the configuration outlives the processes that look at it, until `ramway clean` or a reboot.
fn open(name: &str) -> ramway::Result<Region> {
    Region::builder().persistent(true).open_or_create(name, 64 + 2 * SLOT)
}

fn set(region: &Region, text: &[u8]) -> Result<(), Box<dyn Error>> {
    if text.len() as u64 > SLOT - 8 {
        return Err(format!("{} bytes are too long, at most {} fit", text.len(), SLOT - 8).into());
    }
    let version = region.atomic_u64(0)?.load(Ordering::Relaxed) + 1;
    let slot = SLOTS[version as usize % 2];
    // SeqCst fences on both sides: a reader that sees any byte of this text also sees that its slot is the next one.
    fence(Ordering::SeqCst);
    region.write_at(slot, &(text.len() as u64).to_le_bytes())?;
    region.write_at(slot + 8, text)?;
    region.atomic_u64(0)?.store(version, Ordering::Release);
    Ok(region.notify()?)
}

fn read(region: &Region) -> Result<(u64, String), Box<dyn Error>> {
    loop {
        let version = region.load_u64(0)?;
        let slot = SLOTS[version as usize % 2];
        let mut length = [0; 8];
        region.read_at(slot, &mut length)?;
        let mut text = vec![0; u64::from_le_bytes(length).min(SLOT - 8) as usize];
        region.read_at(slot + 8, &mut text)?;
        fence(Ordering::SeqCst);
        if region.load_u64(0)? == version {
            return Ok((version, String::from_utf8(text)?));
        }
    }
}

fn watch(region: &Region, last: &str) -> Result<(), Box<dyn Error>> {
    let mut seen = 0;
    loop {
        let (version, text) = read(region)?;
        if version != seen {
            seen = version;
            println!("{version}: {text}");
            if text == last {
                return Ok(());
            }
        }
        // Several changes may come as one notification: the newest text is what counts.
        region.wait(None)?;
    }
}
