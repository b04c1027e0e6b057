//! `ramway send`: a file or standard input into a named ring.

use std::path::PathBuf;
use std::time::Duration;

use ramway::{ErrorKind, Ring, RingBuilder, Sender, survey};

use crate::failure::{self, Failure, Outcome, has_text};
use crate::interrupt::Interrupt;
use crate::outgoing::{Input, MessageArgs, Outgoing, Readers};
use crate::output;
use crate::progress::Progress;
use crate::ring::RingArgs;
use crate::units::{parse_duration, size};

const NOTES: &str = "\
Sends FILE, or standard input, as messages into the ring NAME, which is made
if it is not there yet. Either side may be started first. What fits into the
ring is sent without a receiver and waits for the next one, also after this
command has ended; two sends before a recv reach it as one stream.

Without --lines, --frame and --whole, messages are as long as reading gives
them, up to a quarter of the ring.
The end of the input closes the ring, which is how the receiver knows that it
has everything. A sender that fails or is interrupted does not close: its
receiver then says that the sender died.

Exit codes: 0 everything is in the ring; 3 the receiver made no room within
--timeout; 4 the receiver died; 5 the receiver closed before everything was
sent; `ramway --help` has the rest.

Examples:
  ramway send films movie.mkv
  tail -f log | ramway send --lines log
  ramway send --frame 64K --capacity 8M blocks /dev/sda1
  tar c dir | ramway send --wait --timeout 30s backup";

/// What to send.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    #[command(flatten)]
    ring: RingArgs,
    /// The file to send; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    messages: MessageArgs,
    /// Give up when the receiver makes no room for this long; 500ms, 10s, 1m [default: wait forever]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Wait until a receiver has taken everything
    #[arg(long)]
    wait: bool,
}

/// Sends it.
pub fn run(args: &Args) -> Outcome {
    let interrupt = Interrupt::install()?;
    let mut input = Input::open(&args.file)?;
    let sender = open(args)?;
    let progress = Progress::new(input.length, args.ring.quiet || input.terminal);
    let name = args.ring.name.display().to_string();
    let readers = Receiver::new(&sender, name.clone());
    let mut stream = Outgoing { sender, readers, name, timeout: args.timeout, interrupt, progress };
    if let Err(failure) = stream.pump(&mut input, &args.messages) {
        stream.progress.clear();
        // No orderly close: the receiver must not take what it has as complete.
        stream.sender.abandon();
        return Err(failure);
    }
    // From here on everything is in the ring, so the stream has its end, whatever becomes of the receiver.
    let finished = stream.finish(args.wait);
    match &finished {
        Ok(()) => stream.progress.finish("sent"),
        Err(_) => stream.progress.clear(),
    }
    stream.sender.close()?;
    finished
}

fn open(args: &Args) -> Outcome<Sender> {
    let sender = args.ring.open(RingBuilder::sender)?;
    if !sender.is_empty() && !args.ring.quiet {
        output::note(&format!(
            "`{}` holds {} that an earlier sender left: the receiver gets that first",
            args.ring.name.display(),
            size(sender.len() as u64)
        ));
    }
    Ok(sender)
}

/// The one receiver of a ring.
struct Receiver {
    name: String,
    /// The receiver that had already ended when this sender came: its end is not ours to report.
    past: Option<u32>,
}

impl Receiver {
    fn new(sender: &Sender, name: String) -> Self {
        let epoch = sender.peer_epoch();
        Self { name, past: (!sender.is_peer_alive()).then_some(epoch) }
    }
}

impl Readers<Ring> for Receiver {
    const LOG: &'static str = "ring";
    const READER: &'static str = "receiver";
    const CHUNKS: usize = 4;

    fn check(&self, sender: &Sender) -> Outcome {
        lost(sender, self.past, &self.name)
    }

    fn check_taken(&self, sender: &Sender) -> Outcome {
        self.check(sender)
    }

    fn ended(&self, epoch: u32, error: &ramway::Error) -> Outcome {
        if has_text(error) || self.past != Some(epoch) {
            return Err(ended(error, &self.name));
        }
        Ok(())
    }

    fn untaken(&self, sender: &Sender) -> usize {
        sender.len()
    }
}

/// Fails if a receiver was attached beside this sender and has ended.
fn lost(sender: &Sender, past: Option<u32>, name: &str) -> Outcome {
    let epoch = sender.peer_epoch();
    if epoch == 0 || past == Some(epoch) || sender.is_peer_alive() {
        return Ok(());
    }
    let left = size(sender.len() as u64);
    // It says so before it releases its role.
    let closed = survey::inspect(name).is_ok_and(|segment| {
        segment.rings[0].as_ref().is_some_and(|ring| ring.consumer.flags & ramway::layout::ROLE_CLOSED != 0)
    });
    Err(if closed {
        let text = format!("the receiver of `{name}` closed before everything was sent; {left} wait for the next one");
        Failure::new(failure::PEER_CLOSED, text)
    } else {
        let text = format!("the receiver of `{name}` died; {left} wait for the next one");
        Failure::new(failure::PEER_DIED, text)
    })
}

fn ended(error: &ramway::Error, name: &str) -> Failure {
    let code = failure::code_of(error.kind());
    if has_text(error) {
        return Failure::new(code, error.to_string());
    }
    let text = match error.kind() {
        ErrorKind::PeerDead => "died: what it had not taken waits for the next one",
        _ => "closed before everything was sent",
    };
    Failure::new(code, format!("the receiver of `{name}` {text}"))
}
