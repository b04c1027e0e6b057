//! A worker that is killed again and again, and a supervisor that restarts it: every message arrives exactly once.
//!
//! The worker sends the numbers 1 to N, each with itself as its tag. It may die at any instruction. Its successor asks
//! the ring for the last tag that was committed and goes on with the next number.

use ramway::{ErrorKind, Ring};
use std::error::Error;
use std::process::{Command, ExitCode};
use std::time::Duration;

const NUMBER: u32 = 1;
const USAGE: &str = "usage: supervise run RING COUNT KILLS   (starts itself as: supervise worker RING COUNT)";

fn main() -> ExitCode {
    ramway_examples::run("supervise", |arguments| match arguments {
        ["run", ring, count, kills] => supervise(ring, count.parse()?, kills.parse()?),
        ["worker", ring, count] => Ok(work(ring, count.parse()?)?),
        _ => Err(USAGE.into()),
    })
}

fn work(name: &str, count: u64) -> ramway::Result<()> {
    let mut sender = Ring::open_or_create(name).sender()?;
    for number in sender.last_tag().unwrap_or(0) + 1..=count {
        sender.send_tagged(NUMBER, number, &number.to_le_bytes())?;
    }
    sender.close()
}

fn supervise(name: &str, count: u64, kills: u32) -> Result<(), Box<dyn Error>> {
    let receiver = Ring::open_or_create(name).capacity(1 << 16).receiver()?;
    std::thread::scope(|scope| {
        let restarts = scope.spawn(|| keep_alive(name, count, kills).map_err(|e| e.to_string()));
        receive(receiver, count)?;
        let restarts = restarts.join().map_err(|_| "the supervising thread panicked")??;
        println!("{count} messages, {restarts} restarts, none lost, none twice");
        Ok(())
    })
}

fn receive(mut receiver: ramway::Receiver, count: u64) -> Result<(), Box<dyn Error>> {
    let mut expected = 1;
    loop {
        match receiver.recv_timeout(Duration::from_secs(60)) {
            Ok(message) if message.tag() == expected && *message == expected.to_le_bytes() => expected += 1,
            Ok(message) => return Err(format!("number {} came, expected {expected}", message.tag()).into()),
            // Between two workers: the next one will attach.
            Err(error) if error.kind() == ErrorKind::PeerDead => std::thread::sleep(Duration::from_millis(5)),
            Err(error) if error.kind() == ErrorKind::Closed && expected > count => return Ok(()),
            Err(error) => return Err(format!("waiting for number {expected}: {error}").into()),
        }
    }
}

/// Starts the worker, kills it `kills` times at whatever instruction it is at, and starts it again until it has ended
/// well. Gives how often it was started again.
fn keep_alive(name: &str, count: u64, kills: u32) -> Result<u32, Box<dyn Error>> {
    let mut restarts = 0;
    loop {
        let mut worker = Command::new(std::env::current_exe()?).args(["worker", name, &count.to_string()]).spawn()?;
        if restarts < kills {
            std::thread::sleep(Duration::from_millis(15));
            worker.kill()?;
        }
        // One that had ended before it could be killed was successful, and so is not started again.
        let status = worker.wait()?;
        if status.success() {
            return Ok(restarts);
        }
        if restarts == kills {
            return Err(format!("the worker failed by itself: {status}").into());
        }
        restarts += 1;
    }
}
