//! `region`, `write` and `hold`.

use ramway::ring::log::Log;
use ramway::{Receiver, Region, Sender};

use crate::Stop;
use crate::ends::OPEN_TIMEOUT;
use crate::line::Line;

pub(crate) fn region(mut line: Line) -> Result<(), Stop> {
    let name: String = line.need("name")?;
    line.end()?;
    let region = Region::builder().timeout(OPEN_TIMEOUT).open(name)?;
    let mut bytes = vec![0; region.len() as usize];
    region.read_at(0, &mut bytes)?;
    println!("region len={} crc32={}", region.len(), crc32fast::hash(&bytes));
    Ok(())
}

/// Reserves, fills, and commits what is to be kept. The message is looked at by its address from then on.
pub(crate) fn write<L: Log>(tx: &mut Sender<L>, mut line: Line) -> Result<(), Stop> {
    let len = line.need("len")?;
    let (kept, unflushed) = (line.get("kept", len)?, line.yes("unflushed"));
    line.end()?;
    let mut slot = tx.reserve(len)?;
    slot.fill(0x11);
    let address = slot.as_mut_ptr();
    if unflushed {
        slot.commit_unflushed(kept)?
    } else {
        slot.commit(kept)?
    }
    look_at(address, len, 0)
}

pub(crate) fn hold<L: Log>(rx: &mut Receiver<L>, line: Line) -> Result<(), Stop> {
    line.end()?;
    let message = rx.recv_timeout(OPEN_TIMEOUT)?;
    look_at(message.as_ptr().cast_mut(), message.len(), message.tag())
}

/// Writes and reads single bytes of a message by its address, until `release`. The ring stays open meanwhile, and the
/// runner pokes at the producer's side only, which is writable.
fn look_at(address: *mut u8, len: usize, tag: u64) -> Result<(), Stop> {
    println!("view addr={address:p} len={len} tag={tag}");
    while let Some(mut line) = Line::next() {
        let offset = line.get("offset", 0).ok().filter(|&offset| offset < len).unwrap_or(0);
        match line.word.as_str() {
            "poke" => {
                let value = line.need("value")?;
                // SAFETY: inside the message, whose mapping lives as long as the ring is open. Volatile, because the
                // other process looks at it.
                unsafe { address.add(offset).write_volatile(value) };
                println!("poked");
            }
            // SAFETY: as above.
            "peek" => println!("byte value={}", unsafe { address.add(offset).read_volatile() }),
            "release" => {
                println!("released");
                return Ok(());
            }
            other => return Err(Stop::Refused(format!("{other} while a message is held"))),
        }
    }
    Ok(())
}
