//! Follows a log file into a ring; another process prints it.
//!
//! Each line is one message whose tag is the offset in the file where the line ends. A follower that is killed and
//! started again asks the ring for the last tag and goes on there: no line is lost and none is sent twice. The ring is
//! persistent: the tag is kept also when both have gone.

use ramway::{ErrorKind, Receiver, Ring, Sender};
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::process::ExitCode;
use std::time::Duration;

const LINE: u32 = 1;
const USAGE: &str = "usage: log-tail follow RING FILE [--once] | log-tail print RING";

fn main() -> ExitCode {
    ramway_examples::run("log-tail", |arguments| match arguments {
        ["follow", ring, file] => follow(open(ring).sender()?, File::open(file)?, false),
        ["follow", ring, file, "--once"] => follow(open(ring).sender()?, File::open(file)?, true),
        ["print", ring] => print(open(ring).receiver()?),
        _ => Err(USAGE.into()),
    })
}

fn open(ring: &str) -> ramway::RingBuilder {
    Ring::open_or_create(ring).persistent(true)
}

fn follow(mut sender: Sender, file: File, once: bool) -> Result<(), Box<dyn Error>> {
    let mut offset = sender.last_tag().unwrap_or(0);
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(offset))?;
    let mut line = Vec::new();
    loop {
        let read = reader.read_until(b'\n', &mut line)?;
        offset += read as u64;
        if line.ends_with(b"\n") {
            sender.send_tagged(LINE, offset, &line)?;
            line.clear();
        } else if read == 0 {
            if once {
                // Closes in an orderly way: the printer ends too. (A last line without its end is left for later.)
                return Ok(sender.close()?);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn print(mut receiver: Receiver) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let mut said = false;
    loop {
        match receiver.recv() {
            // Written out before it is released: a printer that dies here has its successor print the line again.
            Ok(line) => {
                out.write_all(&line)?;
                out.flush()?;
                said = false;
            }
            Err(error) if error.kind() == ErrorKind::Closed => return Ok(()),
            // On a named ring that is a state, not an end: a successor may attach.
            Err(error) if error.kind() == ErrorKind::PeerDead => {
                if !said {
                    eprintln!("log-tail: the follower died; waiting for the next one");
                }
                said = true;
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
