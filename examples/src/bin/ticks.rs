//! A ticker: plain records of a fixed shape, which a program in any language reads in place.
//!
//! `bindings/go/examples/sse` shows them to browsers. A tick is worth nothing once there is a newer one, so a full ring
//! makes the producer leave ticks out and never wait. Their number is the tag: a restarted producer asks the ring for the
//! last one and counts on from there. That lasts as long as somebody uses the ring or ticks are left in it.

use ramway::{ErrorKind, Ring};
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The only type of message: when (nanoseconds since 1970, u64), the price in cents (i64), how many (u64), little-endian.
const TICK: u32 = 1;
const TICK_LEN: usize = 24;
const USAGE: &str = "usage: ticks send RING EVERY-MS COUNT | ticks show RING COUNT";

fn main() -> ExitCode {
    ramway_examples::run("ticks", |arguments| match arguments {
        ["send", name, every, count] => send(name, Duration::from_millis(every.parse()?), count.parse()?),
        ["show", name, count] => show(name, count.parse()?),
        _ => Err(USAGE.into()),
    })
}

fn send(name: &str, every: Duration, count: u64) -> Result<(), Box<dyn Error>> {
    let mut ring = Ring::open_or_create(name).capacity(1 << 16).timeout(Duration::from_secs(5)).sender()?;
    let first = ring.last_tag().unwrap_or(0) + 1;
    let mut left_out = 0;
    // A walk that looks like a price; where it starts says nothing.
    let mut price = 10_000_i64;
    for number in first..first + count {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
        price += (now / 1000 % 21) as i64 - 10;
        match ring.try_reserve(TICK_LEN) {
            Ok(slot) => {
                let mut slot = slot.with_type_id(TICK).with_tag(number);
                slot[..8].copy_from_slice(&now.to_le_bytes());
                slot[8..16].copy_from_slice(&price.to_le_bytes());
                slot[16..].copy_from_slice(&(now % 500 + 1).to_le_bytes());
                slot.commit(TICK_LEN)?;
            }
            // Nobody reads, or not fast enough, or the reader died and its successor is to come.
            Err(error) if matches!(error.kind(), ErrorKind::Full | ErrorKind::PeerDead | ErrorKind::Closed) => {
                left_out += 1;
            }
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(every);
    }
    println!("{} ticks, {left_out} left out", count - left_out);
    ring.close()?;
    Ok(())
}

fn show(name: &str, count: u64) -> Result<(), Box<dyn Error>> {
    let mut ring = Ring::open_or_create(name).capacity(1 << 16).timeout(Duration::from_secs(5)).receiver()?;
    for _ in 0..count {
        let tick = ring.recv()?;
        let (Some(price), TICK_LEN) = (tick.get(8..16), tick.len()) else { return Err("not a tick".into()) };
        let price = i64::from_le_bytes(price.try_into()?);
        println!("{}: {}.{:02}", tick.tag(), price / 100, price.rem_euclid(100));
    }
    Ok(())
}
