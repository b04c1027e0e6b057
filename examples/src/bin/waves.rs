//! Frames of 256 samples (float32) for a program that wants them as arrays: the Rust half of `examples/python/waves.py`.
//! Its twin in C++ is `examples/cpp/waves.cpp`.

use ramway::Ring;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const SAMPLES: usize = 256;
/// A frame: `SAMPLES` float32, with its number as the tag.
const FRAME: u32 = 1;
/// The last message: nothing but the number of frames, as its tag.
const SHUTDOWN: u32 = 2;
const USAGE: &str = "usage: waves RING COUNT";

fn main() -> ExitCode {
    ramway_examples::run("waves", |arguments| match arguments {
        [ring, count] => produce(ring, count.parse()?),
        _ => Err(USAGE.into()),
    })
}

fn produce(name: &str, count: u64) -> Result<(), Box<dyn Error>> {
    // Each frame begins on a cache line.
    let ring = Ring::open_or_create(name).capacity(1 << 20).align(64).timeout(Duration::from_secs(5));
    let mut sender = ring.sender()?;
    // A tone with an overtone, as a card's buffer would have it; a frame is a window that moves on.
    let tone: Vec<f32> =
        (0..8 * SAMPLES).map(|at| (at as f32 * 0.05).sin() + 0.25 * (at as f32 * 0.31).sin()).collect();
    let mut energy = 0.0_f64;
    let start = Instant::now();
    for number in 0..count {
        let window = &tone[(number as usize * 7) % (7 * SAMPLES)..][..SAMPLES];
        energy += f64::from(window[0] * window[0]);
        let mut slot = sender.reserve(SAMPLES * 4)?.with_type_id(FRAME).with_tag(number);
        slot.copy_from_slice(bytemuck::cast_slice(window));
        slot.commit(SAMPLES * 4)?;
    }
    sender.send_tagged(SHUTDOWN, count, &[])?;
    sender.close()?;
    let seconds = start.elapsed().as_secs_f64();
    println!("sent {count} frames in {seconds:.2} s: {:.2} million a second", count as f64 / seconds / 1e6);
    println!("energy of the first samples: {energy:.1}");
    Ok(())
}
