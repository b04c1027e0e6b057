//! One camera and three readers of its pictures, each with a policy of its own: a controller that needs every picture and
//! reads it in place, a recorder that goes on where it was killed, and a viewer that may miss pictures and is told how many.
//! Each is a process. The guide (docs/guides/one-to-many.md) shows the parts that are marked.

use ramway::{ErrorKind, Message, Publisher, Subscriber, Topic};
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A grey picture of 64 × 64 pixels, all of which are the low byte of its number: whoever reads it can tell that it is whole.
const PICTURE: u32 = 1;
const PIXELS: usize = 64 * 64;
/// What the recorder writes for each picture: its number, then the pixels.
const RECORD: u64 = 8 + PIXELS as u64;
const USAGE: &str = "usage: robot camera TOPIC EVERY-US   (microseconds; until its standard input ends)
       robot controller TOPIC | robot recorder TOPIC FILE | robot viewer TOPIC";

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    ramway_examples::run("robot", |arguments| match arguments {
        ["camera", name, every] => camera(name, Duration::from_micros(every.parse()?)),
        ["controller", name] => controller(name),
        ["recorder", name, file] => recorder(name, file),
        ["viewer", name] => viewer(name),
        _ => Err(USAGE.into()),
    })
}

/// Draws until standard input ends.
fn camera(name: &str, every: Duration) -> Outcome {
    let mut publisher = pictures(name).timestamps(true).publisher()?;
    // The controller and the recorder are to see every picture, so nothing is drawn before they are there.
    publisher.wait_for_subscribers(2)?;
    let input = std::thread::spawn(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    let mut longest = Duration::ZERO;
    while !input.is_finished() {
        let begin = Instant::now();
        draw(&mut publisher)?;
        longest = longest.max(begin.elapsed());
        std::thread::sleep(every);
    }
    println!("{} pictures, the slowest took {longest:?}", publisher.seq());
    publisher.close()?;
    Ok(())
}

// guide: topic
/// Every side opens the topic with this; the first one creates it.
fn pictures(name: &str) -> ramway::TopicBuilder {
    // A killed predecessor holds its role until the kernel has closed its files.
    Topic::open_or_create(name).capacity(1 << 20).timeout(Duration::from_secs(10))
}
// guide: end

// guide: draw
/// Draws a picture into the log. Waits only if the log is full of pictures that the controller or the recorder has not read.
fn draw(publisher: &mut Publisher) -> ramway::Result<()> {
    let number = publisher.seq() + 1;
    let mut slot = publisher.reserve(PIXELS)?.with_type_id(PICTURE);
    slot.fill(number as u8);
    slot.commit(PIXELS)
}
// guide: end

// guide: controller
/// Sees every picture, in place.
fn controller(name: &str) -> Outcome {
    let mut camera = pictures(name).label("controller").subscriber()?;
    let (mut count, mut oldest) = (0, Duration::ZERO);
    each(&mut camera, |picture| {
        check(picture)?;
        count += 1;
        oldest = oldest.max(age(picture));
        Ok(())
    })?;
    println!("{count} pictures, {} missed, the oldest was {oldest:?} old", camera.lost());
    Ok(())
}
// guide: end

// guide: recorder
/// Writes every picture down, also those that come while no recorder runs.
fn recorder(name: &str, path: &str) -> Outcome {
    let (mut file, mut written) = open_record(path)?;
    let mut camera = pictures(name).label("recorder").durable(true).subscriber()?;
    each(&mut camera, |picture| {
        // One that was killed between the write and the release is given this picture again.
        if picture.seq() > written {
            file.write_all(&[&picture.seq().to_le_bytes(), &picture[..]].concat())?;
            written = picture.seq();
        }
        Ok(()) // `each` releases the picture now, after it was written
    })?;
    println!("{written} pictures are in {path}");
    Ok(())
}
// guide: end

// guide: viewer
/// Shows what it is fast enough for. Nobody waits for it.
fn viewer(name: &str) -> Outcome {
    let mut camera = pictures(name).lossy().label("viewer").subscriber()?;
    let (mut shown, mut first, mut last) = (0, 0, 0);
    each(&mut camera, |picture| {
        check(picture)?;
        if shown == 0 {
            first = picture.seq();
            println!("the first picture is number {first}");
        } else if picture.lost() > 0 {
            println!("missed {} before number {}", picture.lost(), picture.seq());
        }
        (shown, last) = (shown + 1, picture.seq());
        Ok(())
    })?;
    println!("{shown} shown and {} missed of the numbers {first} to {last}", camera.lost());
    Ok(())
}
// guide: end

// guide: each
/// Hands out every picture until the camera closes. A camera that was killed is started again by its supervisor: the next
/// one goes on in the same topic, with the next number.
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
// guide: end

/// Refuses a picture that is not whole.
fn check(picture: &Message<'_, Topic>) -> Outcome {
    let whole = picture.len() == PIXELS && picture.iter().all(|pixel| *pixel == picture.seq() as u8);
    if whole { Ok(()) } else { Err(format!("picture {} is not whole", picture.seq()).into()) }
}

/// How long ago it was drawn, by the camera's clock and this one's, which are the same.
fn age(picture: &Message<'_, Topic>) -> Duration {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_nanos(picture.time()))
}

/// Opens the file at its end and gives the number of the last picture in it. Of a recorder that was killed there may be a
/// part of a picture, which comes again.
fn open_record(path: &str) -> std::io::Result<(File, u64)> {
    let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
    let whole = file.metadata()?.len() / RECORD * RECORD;
    file.set_len(whole)?;
    let mut number = [0; 8];
    if whole > 0 {
        file.seek(SeekFrom::Start(whole - RECORD))?;
        file.read_exact(&mut number)?;
    }
    file.seek(SeekFrom::End(0))?;
    Ok((file, u64::from_le_bytes(number)))
}
