//! A camera, a viewer and a recorder of one topic. They know nothing of a bridge: `run.sh` puts the camera on one machine and the other
//! two on another one, in network namespaces of their own where it may make some.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::process::ExitCode;
use std::time::Duration;

use mcap::records::MessageHeader;
use ramway::{ErrorKind, Message, Subscriber, Topic};

/// A grey picture of 320 × 240 pixels, all of which are the low byte of its number: whoever reads it can tell that it is whole.
const PICTURE: u32 = 1;
const PIXELS: usize = 320 * 240;
const USAGE: &str =
    "usage: two-machines camera TOPIC COUNT EVERY-MS | viewer TOPIC | recorder TOPIC FILE | check FILE COUNT";

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = || -> Outcome {
        match arguments[..] {
            ["camera", topic, count, every] => camera(topic, count.parse()?, Duration::from_millis(every.parse()?)),
            ["viewer", topic] => viewer(topic),
            ["recorder", topic, file] => recorder(topic, file),
            ["check", file, count] => check(file, count.parse()?),
            _ => Err(USAGE.into()),
        }
    };
    match done() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("two-machines: {error}");
            ExitCode::FAILURE
        }
    }
}

fn pictures(name: &str) -> ramway::TopicBuilder {
    Topic::open_or_create(name).capacity(8 << 20)
}

/// Draws so many pictures, each straight into the topic.
fn camera(name: &str, count: u64, every: Duration) -> Outcome {
    let mut publisher = pictures(name).timestamps(true).publisher()?;
    // The bridge is one, and nobody else on this machine reads.
    publisher.wait_for_subscribers(1)?;
    for number in 1..=count {
        let mut slot = publisher.reserve(PIXELS)?.with_type_id(PICTURE);
        slot.fill(number as u8);
        slot.commit(PIXELS)?;
        std::thread::sleep(every);
    }
    println!("camera: {count} pictures");
    publisher.close()?;
    Ok(())
}

/// Shows what it is fast enough for. Nobody waits for it.
fn viewer(name: &str) -> Outcome {
    let mut camera = pictures(name).lossy().label("viewer").subscriber()?;
    let mut shown = 0;
    each(&mut camera, |picture| {
        shown += 1;
        is_whole(picture, picture.seq())
    })?;
    println!("viewer: {shown} shown, {} missed", camera.lost());
    Ok(())
}

/// Writes every picture down, as a message of a file that Foxglove and others read (<https://mcap.dev>).
fn recorder(name: &str, path: &str) -> Outcome {
    let mut camera = pictures(name).label("recorder").durable(true).subscriber()?;
    let options = mcap::WriteOptions::new().compression(None);
    let mut file = options.create(BufWriter::new(File::create(path)?))?;
    let metadata = BTreeMap::from([("width".to_owned(), "320".to_owned()), ("height".to_owned(), "240".to_owned())]);
    // Without a schema: the bytes are the pixels.
    let channel_id = file.add_channel(0, name, "grey8", &metadata)?;
    let mut written = 0;
    each(&mut camera, |picture| {
        let (time, sequence) = (picture.time(), u32::try_from(picture.seq())?);
        let header = MessageHeader { channel_id, sequence, log_time: time, publish_time: time };
        file.write_to_known_channel(&header, picture)?;
        written += 1;
        Ok(())
    })?;
    file.finish()?;
    println!("recorder: {written} pictures are in {path}");
    Ok(())
}

/// That a recording has the pictures 1 to `count`, each once and whole.
fn check(path: &str, count: u64) -> Outcome {
    let bytes = fs::read(path)?;
    let mut expected = 1;
    for message in mcap::MessageStream::new(&bytes)? {
        let message = message?;
        let number = u64::from(message.sequence);
        if number != expected {
            return Err(format!("{path}: picture {number} follows {}", expected - 1).into());
        }
        is_whole(&message.data, number)?;
        if message.publish_time == 0 {
            return Err(format!("{path}: picture {number} has no time").into());
        }
        expected += 1;
    }
    if expected != count + 1 {
        return Err(format!("{path} has {} pictures; expected {count}", expected - 1).into());
    }
    println!("{path}: {count} pictures, all whole");
    Ok(())
}

/// Hands out every picture until the camera closes. A link that is down for longer than the rule says is a camera that died: the
/// next one goes on in the same topic.
fn each(camera: &mut Subscriber, mut take: impl FnMut(&Message<'_, Topic>) -> Outcome) -> Outcome {
    loop {
        let end = match camera.recv() {
            Ok(picture) => {
                take(&picture)?;
                continue;
            }
            Err(e) => e,
        };
        match end.kind() {
            ErrorKind::Closed => return Ok(()),
            ErrorKind::PeerDead => camera.wait_for_peer()?,
            _ => return Err(end.into()),
        };
    }
}

fn is_whole(picture: &[u8], number: u64) -> Outcome {
    let whole = picture.len() == PIXELS && picture.iter().all(|pixel| *pixel == number as u8);
    if whole { Ok(()) } else { Err(format!("picture {number} is not whole").into()) }
}
