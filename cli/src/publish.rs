//! `ramway pub`: files or standard input into a named topic.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ramway::{ErrorKind, Publisher, Topic, TopicBuilder, survey};

use crate::failure::{self, Failure, Outcome};
use crate::interrupt::{Interrupt, SLICE};
use crate::outgoing::{Input, MessageArgs, Outgoing, Readers};
use crate::output;
use crate::progress::Progress;
use crate::topic::TopicArgs;
use crate::units::parse_duration;

/// A wait for subscribers that is longer than this is said.
const LONG: Duration = Duration::from_secs(1);

const NOTES: &str = "\
Publishes the FILEs one after another, or standard input, as messages of the
topic NAME, which is made if it is not there yet. One publisher at a time;
any number of subscribers, which may come before or later.

A full log waits for reliable subscribers only. Without one nothing is waited
for: new messages overwrite the oldest ones, and lossy subscribers that are too
slow lose some. A subscriber that comes and goes never ends a publisher.
The topic goes with its last user. So what is published while nobody is
subscribed is lost when this command ends, unless the topic is made with
--persistent; or wait with --wait-for-subscribers.

Without --lines, --frame and --whole, messages are as long as reading gives
them, up to a sixteenth of the log. The end of the input closes the topic:
each subscriber is told so after the last message. A publisher that fails or is
interrupted does not close: its subscribers are told that it died.

Exit codes: 0 everything is published; 2 also where the topic is there and is
not as asked; 3 no room within --timeout, or too few subscribers; 5 the topic
was removed; 7 the topic has a publisher; `ramway --help` has the rest.

Examples:
  tail -f log | ramway pub --lines log    elsewhere, any number of times:
  ramway sub log
  ramway pub --whole --persistent settings settings.json
  ramway pub --wait-for-subscribers 2 --frame 64K --capacity 8M blocks disk.img
  sensor | ramway pub --lines --timestamps --eject-after 500ms sensor";

/// What to publish.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    #[command(flatten)]
    topic: TopicArgs,
    /// The files to publish, one after another; `-` is standard input
    #[arg(default_value = "-", value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    messages: MessageArgs,
    /// Give each message the time of day at which it is published
    #[arg(long)]
    timestamps: bool,
    /// Eject a reliable subscriber that blocks the log for this long without reading; it begins anew at the oldest
    /// message; 500ms, 10s [default: wait for it as long as its process lives]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "lossy_only")]
    eject_after: Option<Duration>,
    /// Begin once this many reliable subscribers are there; lossy and latest ones do not count
    #[arg(long, value_name = "N", conflicts_with = "lossy_only")]
    wait_for_subscribers: Option<usize>,
    /// Give up when reliable subscribers make no room for this long, or do not come; 500ms, 10s, 1m [default: wait forever]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Wait until the reliable subscribers that are there have taken everything
    #[arg(long)]
    wait: bool,
}

/// Publishes it.
pub fn run(args: &Args) -> Outcome {
    let interrupt = Interrupt::install()?;
    // All of them first: a file that is not there is no reason to publish those before it.
    let mut inputs = args.files.iter().map(|file| Input::open(file)).collect::<Outcome<Vec<_>>>()?;
    let sender = args.topic.open(false, |topic| publisher(topic, args))?;
    let length = inputs.iter().map(|input| input.length).sum();
    let progress = Progress::new(length, args.topic.quiet || inputs.iter().any(|input| input.terminal));
    let name = args.topic.shown();
    let readers = Subscribers::new(&args.topic);
    let mut stream = Outgoing { sender, readers, name, timeout: args.timeout, interrupt, progress };
    let mut pump = || -> Outcome {
        if let Some(count) = args.wait_for_subscribers {
            wait_for_subscribers(&mut stream, count, args.topic.quiet)?;
        }
        inputs.iter_mut().try_for_each(|input| stream.pump(input, &args.messages))
    };
    if let Err(failure) = pump() {
        stream.progress.clear();
        // No orderly close: no subscriber must take what it has as complete.
        stream.sender.abandon();
        return Err(failure);
    }
    // From here on everything is in the log, so the stream has its end, whatever becomes of the subscribers.
    let finished = stream.finish(args.wait);
    match &finished {
        Ok(()) => stream.progress.finish("published"),
        Err(_) => stream.progress.clear(),
    }
    stream.sender.close()?;
    finished
}

fn publisher(mut topic: TopicBuilder, args: &Args) -> ramway::Result<Publisher> {
    if let Some(time) = args.eject_after {
        topic = topic.eject_after(time);
    }
    topic.timestamps(args.timestamps).publisher()
}

/// Waits until so many reliable subscribers are there. What is waited for is said after a while: lossy ones, which
/// `ramway sub` makes by default, would be waited for in vain.
fn wait_for_subscribers(stream: &mut Outgoing<Topic, Subscribers>, count: usize, quiet: bool) -> Outcome {
    let Outgoing { sender, readers, name, .. } = stream;
    if readers.found.as_ref().is_some_and(|topic| topic.lossy_only) {
        return Err(Failure::new(
            failure::USAGE,
            format!("the topic `{name}` takes no reliable subscribers (--lossy-only), so that none can be waited for"),
        ));
    }
    let begun = Instant::now();
    let mut is_said = quiet;
    loop {
        stream.interrupt.check()?;
        match sender.wait_for_subscribers_timeout(count, SLICE.min(stream.timeout.unwrap_or(SLICE))) {
            Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            other => return other.map_err(Into::into),
        }
        let there = || sender.subscribers().iter().filter(|one| one.alive && one.lag.is_some()).count();
        if stream.timeout.is_some_and(|timeout| begun.elapsed() >= timeout) {
            let text = format!(
                "timed out: {} of {count} reliable subscribers of `{name}` were there within {:?}",
                there(),
                begun.elapsed()
            );
            return Err(Failure::new(failure::TIMED_OUT, text));
        }
        if !is_said && begun.elapsed() >= LONG {
            is_said = true;
            output::note(&format!(
                "waiting for {count} reliable subscribers of `{name}`, {} are there (lossy and latest ones do not count)",
                there()
            ));
        }
    }
}

/// The subscribers of a topic.
struct Subscribers {
    name: PathBuf,
    /// The topic as it was when this publisher came; `None` if it was removed at once.
    found: Option<Found>,
}

struct Found {
    device: u64,
    inode: u64,
    lossy_only: bool,
}

impl Subscribers {
    fn new(topic: &TopicArgs) -> Self {
        let found = survey::inspect(&topic.name).ok().map(|segment| Found {
            device: segment.device,
            inode: segment.inode,
            lossy_only: segment.topic.is_some_and(|topic| topic.lossy_only),
        });
        Self { name: topic.name.clone(), found }
    }
}

impl Readers<Topic> for Subscribers {
    const LOG: &'static str = "topic";
    const READER: &'static str = "reliable subscriber";
    // A slow lossy subscriber loses a whole message at a time, so several have to fit.
    const CHUNKS: usize = 16;

    /// Subscribers come and go; only without the name nobody can come any more.
    fn check(&self, _: &Publisher) -> Outcome {
        let same = match survey::inspect(&self.name) {
            Ok(now) => self.found.as_ref().is_some_and(|then| (then.device, then.inode) == (now.device, now.inode)),
            Err(error) => error.kind() != ErrorKind::NotFound,
        };
        if same {
            return Ok(());
        }
        let text = format!("the topic `{}` was removed while this publisher used it", self.name.display());
        Err(Failure::new(failure::PEER_CLOSED, text))
    }

    fn check_taken(&self, _: &Publisher) -> Outcome {
        Ok(())
    }

    fn ended(&self, _: u32, error: &ramway::Error) -> Outcome {
        Err(Failure::new(failure::code_of(error.kind()), error.to_string()))
    }

    /// By the slowest reliable subscriber that lives. A dead one takes nothing; of a durable one the log keeps it.
    fn untaken(&self, publisher: &Publisher) -> usize {
        let lags = publisher.subscribers().into_iter().filter(|one| one.alive).filter_map(|one| one.lag);
        lags.map(|lag| lag.bytes as usize).max().unwrap_or(0)
    }
}
