//! `ramway recv`: a named ring into a file or standard output.

mod sink;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ramway::{ErrorKind, Receiver, RingBuilder};

use crate::failure::{self, Failure, Outcome, has_text};
use crate::interrupt::{Interrupt, SLICE};
use crate::progress::Progress;
use crate::ring::RingArgs;
use crate::units::parse_duration;
use sink::Sink;

/// Messages that are written with one call and then given back to the sender together.
const BATCH: usize = 512;

const NOTES: &str = "\
Receives the messages of the ring NAME, which is made if it is not there yet,
and writes them one after another to FILE or standard output. Either side may
be started first. A message is given back to the sender only after it was
written, so that nothing is lost if this command is killed: the next receiver
gets it again.

A regular FILE is written beside its place, as FILE.part, and takes its place
when the sender closes: until then an older FILE stays as it is. If the stream
ends in any other way, FILE.part stays and is named. So FILE is a new file then:
other hard links to the old one keep the old content, and its owner, ACLs and
extended attributes are not taken over. Anything else (a device, a FIFO) is
written to directly; a FIFO is waited for until somebody reads it.

Exit codes: 0 the sender closed, everything is written; 3 the sender sent
nothing for --timeout; 4 the sender died; `ramway --help` has the rest.

Examples:
  ramway recv films copy.mkv
  ramway recv --lines log | grep --line-buffered ERROR
  ramway recv backup | tar x";

/// What to receive.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    #[command(flatten)]
    ring: RingArgs,
    /// The file to write; `-` is standard output
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Accepted beside `send --lines`: messages are written as they are, and a line brings its newline along
    #[arg(long)]
    lines: bool,
    /// Give up when the sender sends nothing for this long; 500ms, 10s, 1m [default: wait forever]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

/// Receives it.
pub fn run(args: &Args) -> Outcome {
    let interrupt = Interrupt::install()?;
    // First the file: a receiver that comes and goes again would end its sender's stream for a mistyped path.
    let mut sink = Sink::open(&args.file, &interrupt)?;
    let receiver = args.ring.open(RingBuilder::receiver).inspect_err(|_| sink.leave(0))?;
    let progress = Progress::new(None, args.ring.quiet || sink.is_terminal());
    let past = (!receiver.is_peer_alive()).then_some(receiver.peer_epoch());
    let mut stream = Stream { receiver, name: args.ring.name.display().to_string(), past, interrupt, progress };
    match stream.pump(&mut sink, args.timeout).and_then(|()| sink.keep()) {
        Ok(()) => {
            stream.progress.finish("received");
            Ok(())
        }
        Err(failure) => {
            stream.progress.clear();
            sink.leave(stream.progress.bytes());
            Err(failure)
        }
    }
}

struct Stream {
    receiver: Receiver,
    name: String,
    /// The sender that had already ended when this receiver came.
    past: Option<u32>,
    interrupt: Interrupt,
    progress: Progress,
}

impl Stream {
    fn pump(&mut self, sink: &mut Sink, timeout: Option<Duration>) -> Outcome {
        let mut moved = Instant::now();
        loop {
            self.interrupt.check()?;
            let slice = SLICE.min(timeout.unwrap_or(SLICE));
            let error = match self.receiver.recv_batch_timeout(BATCH, slice) {
                Ok(mut batch) => {
                    let written = sink.write(&self.interrupt, batch.iter());
                    let (bytes, messages) = match written {
                        Ok(written) => written,
                        Err(failure) => {
                            // Dropping it would tell the sender that it was taken.
                            std::mem::forget(batch);
                            return Err(failure);
                        }
                    };
                    drop(batch);
                    self.progress.add(bytes, messages);
                    moved = Instant::now();
                    continue;
                }
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::TimedOut | ErrorKind::Empty | ErrorKind::Interrupted => {}
                ErrorKind::Closed if has_text(&error) => return Err(error.into()),
                ErrorKind::Closed => return Ok(()),
                ErrorKind::PeerDead => {
                    // The death of a sender that left nothing behind is not news: its successor is waited for.
                    if self.progress.messages() > 0 || self.past != Some(self.receiver.peer_epoch()) {
                        return Err(self.died());
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => return Err(error.into()),
            }
            if timeout.is_some_and(|timeout| moved.elapsed() >= timeout) {
                return Err(Failure::new(
                    failure::TIMED_OUT,
                    format!("timed out: no sender sent anything into `{}` for {:?}", self.name, moved.elapsed()),
                ));
            }
        }
    }

    fn died(&self) -> Failure {
        Failure::new(
            failure::PEER_DIED,
            format!(
                "the sender of `{}` died (or gave up) before its end: {} byte(s) in {} message(s) are all that it sent",
                self.name,
                self.progress.bytes(),
                self.progress.messages()
            ),
        )
    }
}
