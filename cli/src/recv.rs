//! `ramway recv`: a named ring into a file or standard output.

use std::path::PathBuf;
use std::time::Duration;

use ramway::{Batch, Ring, RingBuilder};

use crate::failure::Outcome;
use crate::incoming::{From, Incoming, Sink, Write, past};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::ring::RingArgs;
use crate::units::parse_duration;

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
    // A close that no receiver has seen is the end of what is delivered here.
    let from = From { who: "sender", dead: past(&receiver), closed: None, follow: false };
    let name = args.ring.name.display().to_string();
    let mut stream = Incoming { receiver, name, from, interrupt, progress };
    match stream.pump(&mut sink, args.timeout, None).and_then(|()| sink.keep()) {
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

/// Messages as they are, one after another.
impl Write<Ring> for Sink {
    fn batch(&mut self, interrupt: &Interrupt, batch: &mut Batch<'_, Ring>) -> Outcome<(u64, u64)> {
        self.write(interrupt, batch.iter())
    }

    fn lagged(&mut self, _: u64) {
        unreachable!("nobody ejects the receiver of a ring");
    }
}
