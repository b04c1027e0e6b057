//! Many meters send their readings to one collector: an inbox. Each meter has a ring of its own, so that a collector that is
//! behind slows each of them down by itself, and one that is killed takes nothing of the others with it. The guide
//! (docs/guides/one-to-many.md) shows the parts that are marked.

use ramway::{Bus, Inbox, Incoming, Left};
use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

const READING: u32 = 1;
const USAGE: &str = "usage: meters collect NAME METERS | meters send NAME COUNT";

fn main() -> ExitCode {
    ramway_examples::run("meters", |arguments| match arguments {
        ["collect", name, meters] => collect(name, meters.parse()?),
        ["send", name, count] => send(name, count.parse()?),
        _ => Err(USAGE.into()),
    })
}

// guide: collect
/// Receives until so many meters have come and gone. A reading's tag is its number: from 1, without a gap.
fn collect(name: &str, meters: usize) -> Result<(), Box<dyn Error>> {
    let mut inbox = Inbox::builder(name).capacity(64 << 10).max_peers(meters).bind()?;
    let mut last: HashMap<u64, u64> = HashMap::new();
    let mut gone = 0;
    while gone < meters {
        match inbox.recv()? {
            Incoming::Message(meter, reading) => {
                let last = last.entry(meter.id).or_default();
                if reading.tag() != *last + 1 {
                    return Err(format!("reading {} of meter {} came after {last}", reading.tag(), meter.id).into());
                }
                *last = reading.tag();
            }
            Incoming::Left(meter, how) => {
                let how = match how {
                    Left::Closed => "closed",
                    Left::Died => "was killed",
                    Left::Corrupt => "wrote wrong values",
                };
                let count = last.remove(&meter.id).unwrap_or(0);
                println!("process {}: {count} readings, then it {how}", meter.pid.unwrap_or(0));
                gone += 1;
            }
        }
    }
    Ok(())
}
// guide: end

// guide: meter
/// A meter is an ordinary connection to the inbox's name.
fn send(name: &str, count: u64) -> Result<(), Box<dyn Error>> {
    let mut inbox = Bus::connector(name).timeout(Duration::from_secs(10)).connect()?;
    for number in 1..=count {
        inbox.send_tagged(READING, number, &(number as f64).sqrt().to_le_bytes())?;
        if number % 1000 == 0 {
            println!("{number} sent");
        }
    }
    Ok(inbox.close()?)
}
// guide: end
