//! The programs that use rings and know nothing of bridges.

use std::time::{Duration, Instant};

use ramway::{ErrorKind, Receiver, Ring, Sender};

use crate::{Done, obey, read_all};

/// The other side's program and both bridges are there within this.
const SOON: Duration = Duration::from_secs(60);

fn sender(name: &str) -> ramway::Result<Sender> {
    Ring::create(name).capacity(16 << 20).sender()
}

/// Of a ring that a bridge makes.
fn receiver(name: &str) -> ramway::Result<Receiver> {
    let end = Instant::now() + SOON;
    loop {
        match Ring::open(name).receiver() {
            Err(e) if e.kind() == ErrorKind::NotFound && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened,
        }
    }
}

pub fn send(size: usize) -> Done {
    let mut sender = sender("there")?;
    let mut message = vec![1; size];
    let mut sent = 0u64;
    obey(|number| {
        for _ in 0..number {
            message[..8].copy_from_slice(&sent.to_le_bytes());
            sender.send(1, &message)?;
            sent += 1;
        }
        Ok(String::new())
    })
}

pub fn receive() -> Done {
    let mut receiver = receiver("there")?;
    let (mut received, mut sum) = (0u64, 0);
    obey(|number| {
        for _ in 0..number {
            let message = receiver.recv()?;
            assert_eq!(message[..8], received.to_le_bytes(), "the next one arrives");
            sum = read_all(&message).wrapping_add(sum);
            received += 1;
        }
        Ok(sum.to_string())
    })
}

pub fn ping(size: usize) -> Done {
    let mut there = sender("there")?;
    let message = vec![1; size];
    // The other side makes the ring back once this one has come to it.
    let mut back = receiver("back")?;
    obey(|number| {
        let mut took = Vec::with_capacity(number as usize);
        for _ in 0..number {
            let begin = Instant::now();
            there.send(1, &message)?;
            assert_eq!(back.recv()?.len(), size, "it comes back");
            took.push(begin.elapsed().as_nanos() as u64);
        }
        took.sort_unstable();
        Ok(took[took.len() / 2].to_string())
    })
}

pub fn pong() -> Done {
    let mut back = sender("back")?;
    let mut there = receiver("there")?;
    println!("ready");
    loop {
        let message = there.recv()?;
        back.send(1, &message)?;
    }
}
