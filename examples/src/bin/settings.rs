//! Settings that any number of processes read before each piece of work, in nanoseconds, and that one process changes now and
//! then: the newest message of a topic. Compare `config`, which does the same over a region and has to make sure by itself
//! that nobody reads half of a change. The guide (docs/guides/one-to-many.md) shows the parts that are marked.

use ramway::{ErrorKind, Topic};
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: settings set TOPIC TEXT | settings change TOPIC COUNT | settings show TOPIC
       settings work TOPIC UNTIL-TEXT";

fn main() -> ExitCode {
    ramway_examples::run("settings", |arguments| match arguments {
        ["set", name, text] => Ok(set(name, text)?),
        ["change", name, count] => change(name, count.parse()?),
        ["show", name] => {
            let mut settings = topic(name).latest().subscriber()?;
            let newest = settings.latest()?;
            println!("{}: {}", newest.seq(), String::from_utf8_lossy(&newest));
            Ok(())
        }
        ["work", name, last] => work(name, last),
        _ => Err(USAGE.into()),
    })
}

// guide: settings
/// Persistent: the settings stay when nobody runs. `lossy_only`: no reader can ever make the writer wait.
fn topic(name: &str) -> ramway::TopicBuilder {
    Topic::open_or_create(name).persistent(true).lossy_only(true).capacity(64 << 10).timeout(Duration::from_secs(10))
}

fn set(name: &str, text: &str) -> ramway::Result<()> {
    let mut publisher = topic(name).publisher()?;
    publisher.send(0, text.as_bytes())?;
    publisher.close()
}

/// Works by the newest settings until they say `last`.
fn work(name: &str, last: &str) -> Result<(), Box<dyn Error>> {
    let mut settings = topic(name).latest().subscriber()?;
    let mut seen = settings.wait_newer()?.seq(); // of those that are there, or of the first ones that come
    println!("begins with number {seen}");
    let (mut rounds, begin) = (0_u64, Instant::now());
    loop {
        let newest = match settings.latest() {
            Ok(newest) => newest,
            // Overwritten each time that it was copied.
            Err(e) if e.kind() == ErrorKind::Empty => continue,
            Err(e) => return Err(e.into()),
        };
        seen = newer(seen, newest.seq(), &newest)?;
        if *newest == *last.as_bytes() {
            break;
        }
        rounds += 1; // here the work is done, by these settings
    }
    let each = begin.elapsed().as_nanos() / u128::from(rounds.max(1));
    println!("{rounds} rounds of {each} ns, each by whole settings");
    Ok(())
}
// guide: end

/// A writer that changes the settings as fast as it can.
fn change(name: &str, count: u64) -> Result<(), Box<dyn Error>> {
    let mut publisher = topic(name).publisher()?;
    for number in 1..=count {
        publisher.send(0, [number.to_string().as_str(); 16].join(" ").as_bytes())?;
    }
    Ok(publisher.close()?)
}

/// Refuses settings that are older than those that were seen, or a mix of two of them: `change` writes one word again and again.
fn newer(seen: u64, seq: u64, text: &[u8]) -> Result<u64, Box<dyn Error>> {
    let mut words = text.split(|byte| *byte == b' ');
    let first = words.next();
    if seq < seen || words.any(|word| Some(word) != first) {
        return Err(format!("after number {seen}: number {seq}, '{}'", String::from_utf8_lossy(text)).into());
    }
    Ok(seq)
}
