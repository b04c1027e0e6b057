//! Two services that a supervisor restarts whenever they end, killed or not: `feed` sends a journal of orders into a
//! persistent ring, `book` writes down what it receives. The guide (docs/INTEGRATION.md, "Supervision and restart")
//! shows `feed` and `book` as they are here.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "usage: orders feed COUNT | orders book FILE   (the ring is 'orders' in RAMWAY_DIR)";

fn main() -> ExitCode {
    ramway_examples::run("orders", |arguments| match arguments {
        ["feed", count] => {
            let journal: Vec<_> =
                (1..=count.parse()?).map(|number| (number, format!("order {number}").into())).collect();
            Ok(feed(&journal)?)
        }
        ["book", file] => {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
            Ok::<_, Box<dyn Error>>(book(|number, order| {
                // One write: a killed process leaves the line whole or leaves nothing.
                let line = format!("{number} {}\n", String::from_utf8_lossy(order));
                if let Err(e) = file.write_all(line.as_bytes()) {
                    // Ends before the order is released: it comes again, to the next `book`, when the disk has space.
                    eprintln!("orders: order {number} was not written: {e}");
                    std::process::exit(1);
                }
            })?)
        }
        _ => Err(USAGE.into()),
    })
}

// guide: feed
const ORDER: u32 = 1;

/// Both sides open the ring with this: the first one creates it, so both say `persistent`.
fn ring() -> ramway::RingBuilder {
    // A killed predecessor holds the role until the kernel has closed its files: a supervisor can be faster than that.
    let timeout = std::time::Duration::from_secs(10);
    ramway::Ring::open_or_create("orders").persistent(true).capacity(1 << 20).timeout(timeout)
}

/// `journal` is numbered from 1: a message that was sent without a tag has the tag 0.
fn feed(journal: &[(u64, Vec<u8>)]) -> ramway::Result<()> {
    let mut sender = ring().sender()?;
    let last = sender.last_tag().unwrap_or(0);
    for (number, bytes) in journal.iter().filter(|(number, _)| *number > last) {
        sender.send_tagged(ORDER, *number, bytes)?;
    }
    sender.close()
}
// guide: end

// guide: book
/// Returns when the sender closed or died: the supervisor starts it again.
fn book(mut write_down: impl FnMut(u64, &[u8])) -> ramway::Result<()> {
    let mut receiver = ring().receiver()?;
    loop {
        match receiver.recv() {
            // Released when it is dropped, so after it was written down.
            Ok(order) => write_down(order.tag(), &order),
            Err(e) if matches!(e.kind(), ramway::ErrorKind::Closed | ramway::ErrorKind::PeerDead) => return Ok(()),
            Err(e) => return Err(e),
        }
    }
}
// guide: end
