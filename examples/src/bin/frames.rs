//! Pictures from one process to another without a copy: drawn into the ring, looked at in the ring.
//!
//! The ring is created with an alignment of 64, so that every picture begins on a cache line and vector instructions
//! can load it as it lies.

use ramway::{ErrorKind, Ring};
use std::error::Error;
use std::process::ExitCode;

const WIDTH: usize = 640;
const HEIGHT: usize = 480;
const BYTES: usize = WIDTH * HEIGHT * 4;
/// The message's type id says what the pixels are.
const BGRA_640_480: u32 = 0x4247_5241;
const USAGE: &str = "usage: frames produce RING COUNT | frames consume RING";

fn main() -> ExitCode {
    ramway_examples::run("frames", |arguments| match arguments {
        ["produce", ring, count] => produce(ring, count.parse()?),
        ["consume", ring] => consume(ring),
        _ => Err(USAGE.into()),
    })
}

/// Room for six pictures: the producer may be that far ahead.
fn ring(name: &str) -> ramway::RingBuilder {
    Ring::open_or_create(name).capacity(8 << 20).align(64)
}

fn produce(name: &str, count: u64) -> Result<(), Box<dyn Error>> {
    let mut sender = ring(name).sender()?;
    let mut sum = 0u64;
    for number in 0..count {
        let mut slot = sender.reserve(BYTES)?.with_type_id(BGRA_640_480).with_tag(number);
        draw(&mut slot, number);
        sum += brightness(&slot);
        slot.commit(BYTES)?;
    }
    sender.close()?;
    println!("{count} frames, brightness {sum}");
    Ok(())
}

fn consume(name: &str) -> Result<(), Box<dyn Error>> {
    let mut receiver = ring(name).receiver()?;
    let (mut count, mut sum) = (0u64, 0u64);
    loop {
        match receiver.recv() {
            Ok(frame) => {
                if (frame.type_id(), frame.len(), frame.tag()) != (BGRA_640_480, BYTES, count) {
                    return Err(format!("frame {} is not the {count}th picture", frame.tag()).into());
                }
                sum += brightness(&frame);
                count += 1;
            }
            Err(error) if error.kind() == ErrorKind::Closed => break,
            Err(error) => return Err(error.into()),
        }
    }
    println!("{count} frames, brightness {sum}");
    Ok(())
}

/// A gradient that moves by a pixel a frame.
fn draw(pixels: &mut [u8], number: u64) {
    for (y, row) in pixels.chunks_exact_mut(WIDTH * 4).enumerate() {
        for (x, pixel) in row.chunks_exact_mut(4).enumerate() {
            let shade = (x as u64 + number) as u8;
            pixel.copy_from_slice(&[shade, y as u8, shade ^ y as u8, 255]);
        }
    }
}

fn brightness(pixels: &[u8]) -> u64 {
    pixels.chunks_exact(4).map(|p| u64::from(p[0]) + u64::from(p[1]) + u64::from(p[2])).sum()
}
