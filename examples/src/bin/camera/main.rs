//! A camera over a conveyor belt: pictures drawn straight into a ring at a steady rate, which never waits for the program
//! that reads them. `examples/node/camera` shows them in a browser.
//!
//! Each exposure has a number and the time of its beginning. A picture that finds the ring full is left out and counted;
//! so is an exposure whose time had passed before the camera came to it. A receiver can therefore account for every
//! number that it did not get.

mod scene;

use bytemuck::{Pod, Zeroable};
use ramway::{ErrorKind, Ring};
use scene::{HEIGHT, PICTURE_LEN, Scene, WIDTH};
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What comes before the planes Y, U and V of a picture; little-endian, without gaps.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Header {
    width: u32,
    height: u32,
    /// Of the exposure, from 1 on since the camera's start.
    number: u64,
    /// When the exposure began, in nanoseconds since 1970.
    captured: u64,
    /// When the camera started: tells its numbers from those of another run.
    started: u64,
    /// Exposures since the start that found the ring full.
    ring_full: u64,
    /// Exposures since the start that the camera itself came too late for.
    late: u64,
    /// Exposures a second, nominally.
    rate: u32,
    reserved: [u32; 3],
}

/// The type id says what the pixels are: `I420` in little-endian letters.
const I420: u32 = u32::from_le_bytes(*b"I420");
/// Header and planes begin on cache lines.
const ALIGN: u32 = 64;
/// Nine pictures: 150 ms at 60 a second for a receiver that is held up.
const CAPACITY: u64 = 4 << 20;
const USAGE: &str = "usage: camera RING PER-SECOND [COUNT]";

fn main() -> ExitCode {
    ramway_examples::run("camera", |arguments| match arguments {
        [name, rate] => film(name, rate.parse()?, u64::MAX),
        [name, rate, count] => film(name, rate.parse()?, count.parse()?),
        _ => Err(USAGE.into()),
    })
}

#[derive(Default)]
struct Counts {
    sent: u64,
    ring_full: u64,
    late: u64,
    /// Nobody was there to look.
    unwatched: u64,
}

fn film(name: &str, rate: u32, count: u64) -> Result<(), Box<dyn Error>> {
    if !(1..=1000).contains(&rate) {
        return Err("between 1 and 1000 pictures a second".into());
    }
    let ring = Ring::open_or_create(name).capacity(CAPACITY).align(ALIGN).timeout(Duration::from_secs(5));
    let mut sender = ring.sender()?;
    let scene = Scene::new();
    let (start, started) = (Instant::now(), now());
    let period = Duration::from_secs(1) / rate;
    let mut counts = Counts::default();
    let mut next_report = Duration::from_secs(1);
    for number in 1..=count {
        let due = Duration::from_secs_f64(number as f64 / f64::from(rate));
        if start.elapsed() > due + period {
            counts.late += 1;
            continue;
        }
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        if start.elapsed() >= next_report {
            report(&counts);
            next_report = start.elapsed() + Duration::from_secs(1);
        }
        let captured = now();
        if !sender.is_peer_alive() {
            counts.unwatched += 1;
            continue;
        }
        match sender.try_reserve(size_of::<Header>() + PICTURE_LEN) {
            Ok(slot) => {
                let mut slot = slot.with_type_id(I420).with_tag(number);
                let (header, picture) = slot.split_at_mut(size_of::<Header>());
                let (width, height) = (WIDTH as u32, HEIGHT as u32);
                let Counts { ring_full, late, .. } = counts;
                let words =
                    Header { width, height, number, captured, started, ring_full, late, rate, reserved: [0; 3] };
                header.copy_from_slice(bytemuck::bytes_of(&words));
                scene.draw(picture, number, rate, captured);
                slot.commit(size_of::<Header>() + PICTURE_LEN)?;
                counts.sent += 1;
            }
            // The last two: the receiver went while the picture was exposed.
            Err(error) if matches!(error.kind(), ErrorKind::Full | ErrorKind::PeerDead | ErrorKind::Closed) => {
                counts.ring_full += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    sender.close()?;
    report(&counts);
    Ok(())
}

fn report(Counts { sent, ring_full, late, unwatched }: &Counts) {
    println!("{sent} sent, {ring_full} ring full, {late} late, {unwatched} unwatched");
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
