//! Frames of samples from three sensors of a machine, as a data-acquisition card delivers them; the Rust half of
//! `examples/jvm`, where a Flow takes them apart.
//!
//! The type id is the sensor, the tag the time in nanoseconds since the start, the payload little-endian float32 samples:
//! vibration in g, temperature in degrees, current in ampere. Now and then a bearing knocks. The last message is of another
//! type. It says what was sent of each sensor, and the receiver compares.

use bytemuck::{Pod, Zeroable};
use ramway::Ring;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Samples a frame of each sensor; the type id is the index.
const SAMPLES: [usize; 3] = [64, 1, 16];
/// The last message: a [`Sum`] for each sensor, and in the tag how many frames were sent.
const SHUTDOWN: u32 = 100;
/// A frame of the vibration sensor in so many has a knock in it.
const KNOCK: u64 = 97;
const USAGE: &str = "usage: sensors RING COUNT PER-SECOND (0: as fast as it goes)";

/// What was sent of one sensor. The sum is added up frame by frame in this order: the receiver's must be equal to the bit.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct Sum {
    frames: u64,
    sum: f64,
}

fn main() -> ExitCode {
    ramway_examples::run("sensors", |arguments| match arguments {
        [ring, count, rate] => produce(ring, count.parse()?, rate.parse()?),
        _ => Err(USAGE.into()),
    })
}

fn produce(name: &str, count: u64, rate: u64) -> Result<(), Box<dyn Error>> {
    let mut sender = Ring::open_or_create(name).capacity(1 << 20).timeout(Duration::from_secs(5)).sender()?;
    let mut sums = [Sum::default(); SAMPLES.len()];
    let mut knocks = 0;
    let start = Instant::now();
    for number in 0..count {
        if rate != 0 {
            let due = Duration::from_secs_f64(number as f64 / rate as f64);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
        let sensor = (number % SAMPLES.len() as u64) as usize;
        let time = start.elapsed().as_nanos() as u64;
        let mut slot = sender.reserve(SAMPLES[sensor] * 4)?.with_type_id(sensor as u32).with_tag(time);
        // Samples begin where payloads do, on a multiple of 16 bytes.
        let samples: &mut [f32] = bytemuck::try_cast_slice_mut(&mut slot).map_err(|error| error.to_string())?;
        for (i, sample) in samples.iter_mut().enumerate() {
            *sample = signal(sensor, number, i as u64);
        }
        if sensor == 0 && number % KNOCK == 0 {
            samples[20] += 9.0;
            knocks += 1;
        }
        sums[sensor].frames += 1;
        sums[sensor].sum += samples.iter().map(|&sample| f64::from(sample)).sum::<f64>();
        slot.commit(SAMPLES[sensor] * 4)?;
    }
    sender.send_tagged(SHUTDOWN, count, bytemuck::cast_slice(&sums))?;
    sender.close()?;
    let seconds = start.elapsed().as_secs_f64();
    println!("sent {count} frames in {seconds:.2} s, {knocks} knocks");
    Ok(())
}

/// Something periodic and a little noise.
fn signal(sensor: usize, number: u64, i: u64) -> f32 {
    let at = number * 64 + i;
    let noise = (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f32 / (1 << 24) as f32 - 0.5;
    match sensor {
        0 => (at as f32 * 0.3).sin() + 0.2 * noise,
        1 => 61.0 + 4.0 * (number as f32 * 1e-4).sin() + 0.05 * noise,
        _ => 12.0 + 0.8 * (at as f32 * 0.02).cos() + 0.1 * noise,
    }
}
