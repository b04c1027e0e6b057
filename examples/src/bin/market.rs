//! Market ticks of 32 bytes, the Rust half of two pairs: `examples/python/ticks_send.py` sends them to `consume`, and
//! `examples/python/market.py` awaits those of `produce`.
//!
//! The last message is of another type. It says what the sender made of the day (money and quantity of each symbol), and
//! the receiver compares: all ticks arrived, whole and once.

use bytemuck::{Pod, Zeroable};
use ramway::{ErrorKind, Ring};
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Everything a tick has, little-endian and without gaps: NumPy reads it as
/// `[("time", "u8"), ("price", "i8"), ("number", "u8"), ("symbol", "u4"), ("quantity", "u4")]`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Tick {
    /// Nanoseconds since the sender's start.
    time: u64,
    /// In 1/10000 of the currency.
    price: i64,
    /// Counts up from 0.
    number: u64,
    symbol: u32,
    quantity: u32,
}

/// What was traded of one symbol.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Pod, Zeroable)]
struct Total {
    /// Sum of price × quantity.
    money: i64,
    quantity: u64,
}

const TICK: u32 = 1;
/// The last message: a [`Total`] for each symbol, and in the tag how many ticks were sent.
const SHUTDOWN: u32 = 2;
const SYMBOLS: usize = 16;
const USAGE: &str = "usage: market produce RING COUNT PER-SECOND | market consume RING";

fn main() -> ExitCode {
    ramway_examples::run("market", |arguments| match arguments {
        ["produce", ring, count, rate] => produce(ring, count.parse()?, rate.parse()?),
        ["consume", ring] => consume(ring),
        _ => Err(USAGE.into()),
    })
}

fn ring(name: &str) -> ramway::RingBuilder {
    Ring::open_or_create(name).capacity(8 << 20).timeout(Duration::from_secs(5))
}

/// Sends at a steady pace in bursts of a millisecond, as a feed handler does that reads packets; 0 = without a pause.
fn produce(name: &str, count: u64, rate: u64) -> Result<(), Box<dyn Error>> {
    let mut sender = ring(name).sender()?;
    let mut totals = [Total::default(); SYMBOLS];
    let mut prices: [i64; SYMBOLS] = std::array::from_fn(|symbol| 100_0000 * (symbol as i64 + 1));
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let burst = if rate == 0 { 1024 } else { (rate / 1000).max(1) };
    let start = Instant::now();
    for first in (0..count).step_by(burst as usize) {
        if rate != 0 {
            let due = Duration::from_secs_f64(first as f64 / rate as f64);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
        let time = start.elapsed().as_nanos() as u64;
        for number in first..count.min(first + burst) {
            // Xorshift: prices walk at random, and stay above zero for as long as this example runs.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let symbol = (random % SYMBOLS as u64) as usize;
            prices[symbol] = (prices[symbol] + (random >> 8) as i64 % 201 - 100).max(1);
            let quantity = (random >> 32) as u32 % 500 + 1;
            let tick = Tick { time, price: prices[symbol], number, symbol: symbol as u32, quantity };
            totals[symbol].add(&tick);
            let mut slot = sender.reserve(size_of::<Tick>())?.with_type_id(TICK).with_tag(number);
            slot.copy_from_slice(bytemuck::bytes_of(&tick));
            slot.commit_unflushed(size_of::<Tick>())?;
        }
        sender.flush()?;
    }
    let took = start.elapsed();
    sender.send_tagged(SHUTDOWN, count, bytemuck::cast_slice(&totals))?;
    sender.close()?;
    report("sent", count, took, &totals);
    Ok(())
}

fn consume(name: &str) -> Result<(), Box<dyn Error>> {
    let mut receiver = ring(name).receiver()?;
    let mut totals = [Total::default(); SYMBOLS];
    let (mut count, mut start, mut agreed) = (0, None, false);
    loop {
        let message = match receiver.recv() {
            Ok(message) => message,
            // The end of the stream is received like a message: it is what releases the ring's name.
            Err(error) if error.kind() == ErrorKind::Closed && agreed => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let now = start.get_or_insert_with(Instant::now);
        match message.type_id() {
            TICK => {
                let tick: &Tick = message.as_pod()?;
                if tick.number != count {
                    return Err(format!("tick {} came after {count} others", tick.number).into());
                }
                totals.get_mut(tick.symbol as usize).ok_or("a symbol that there is not")?.add(tick);
                count += 1;
            }
            SHUTDOWN => {
                report("received", count, now.elapsed(), &totals);
                let theirs = message.chunks_exact(size_of::<Total>()).map(bytemuck::pod_read_unaligned::<Total>);
                agreed = message.tag() == count && theirs.eq(totals);
                if !agreed {
                    return Err("the sender's figures are others".into());
                }
            }
            other => return Err(format!("a message of type {other}").into()),
        }
    }
}

impl Total {
    fn add(&mut self, tick: &Tick) {
        self.money += tick.price * i64::from(tick.quantity);
        self.quantity += u64::from(tick.quantity);
    }
}

fn report(what: &str, count: u64, took: Duration, totals: &[Total]) {
    let seconds = took.as_secs_f64();
    println!("{what} {count} ticks in {seconds:.2} s: {:.2} million a second", count as f64 / seconds / 1e6);
    let mean = |total: &Total| total.money as f64 / total.quantity.max(1) as f64 / 1e4;
    let means: Vec<String> = totals.iter().map(|total| format!("{:.2}", mean(total))).collect();
    println!("mean prices by volume: {}", means.join(" "));
}
