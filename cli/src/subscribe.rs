//! `ramway sub`: messages of a named topic into a file or standard output.

mod format;
mod gaps;

use std::path::PathBuf;
use std::time::Duration;

use ramway::{ErrorKind, Subscriber, Topic, TopicBuilder, survey};

use crate::failure::{self, Failure, Outcome};
use crate::incoming::{From, Incoming, Sink, past};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Progress;
use crate::topic::TopicArgs;
use crate::units::parse_duration;
use format::{Format, Formatted};
use gaps::Gaps;

const NOTES: &str = "\
Writes the messages of the topic NAME, which is made if it is not there yet, to
FILE or standard output. Publisher and subscribers may be started in any order.

  --lossy     (default) the publisher never waits for this command; messages that
              it is too slow for are lost, and how many is said on standard error
  --latest    the newest message, then each time there is a newer one the newest;
              the publisher never waits
  --reliable  every message; the publisher waits when the log is full, unless it
              ejects slow subscribers, which is said on standard error too
  --reliable --durable --label L
              as --reliable, and what is published while no subscriber with the
              label L runs is kept for the next one. The publisher waits for it
              when the log is full, until `ramway sub NAME --unsubscribe --label L`.
              One that has everything does not keep the topic when its last user
              goes: make it --persistent where publishers come and go

Formats:
  raw    the messages as they are, one after another
  lines  each message and a newline, unless it ends with one
  json   a JSON object a line: {\"seq\", \"time_ns\", \"lost\", \"type_id\", \"tag\",
         \"len\", \"encoding\", \"payload\"}; encoding is utf-8 or, where the payload
         is no text, base64; time_ns is null if the publisher does not stamp;
         lost is how many messages are missing right before this one, or with
         --latest how many were skipped
  hex    each message as hexadecimal digits and a newline

FILE is written as `ramway recv` writes one. A message of a reliable subscriber is
given back to the publisher only after it was written, so a durable subscriber that
is killed loses nothing: the next one gets it again.

Exit codes: 0 the publisher closed, or --count messages are written; 3 nothing
was published for --timeout; 4 the publisher died (with --follow neither ends
it); 6 with --read-only or
--unsubscribe, nothing has this name; 7 no free slot, or the label is taken;
`ramway --help` has the rest.

Examples:
  ramway sub log --format lines
  ramway sub settings --latest --count 1
  ramway sub settings --latest --follow --format lines
  ramway sub sensor --format json | jq -r 'select(.lost > 0)'
  ramway sub orders --reliable --durable --label audit orders.log";

/// What to receive.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    #[command(flatten)]
    topic: TopicArgs,
    /// The file to write; `-` is standard output
    #[arg(default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    start: StartArgs,
    /// A name that `ramway ls` and `inspect` show; of a reliable subscriber it is its alone
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Keep the place in the log when this command ends, for the next one with this label
    #[arg(long, requires = "label", requires = "reliable", conflicts_with_all = ["lossy", "latest"])]
    durable: bool,
    /// Receive nothing: forget the durable subscriber with this label, whose command has ended
    #[arg(
        long,
        requires = "label",
        conflicts_with_all = ["durable", "read_only", "count", "follow", "policy", "start", "timeout", "file"]
    )]
    unsubscribe: bool,
    /// Open the topic, which has to be there, for reading only: another user's with mode 644, for example
    #[arg(long, conflicts_with_all = ["reliable", "label", "persistent", "mode"])]
    read_only: bool,
    /// Go on with the next publisher when one closes or dies, instead of ending
    #[arg(long)]
    follow: bool,
    /// End after this many messages
    #[arg(long, value_name = "N", value_parser = parse_count)]
    count: Option<u64>,
    /// How messages are written
    #[arg(long, value_name = "FORMAT", default_value = "raw")]
    format: Format,
    /// Give up when nothing is published for this long; 500ms, 10s, 1m [default: wait forever]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

/// At most one of them; none is `--lossy`.
#[derive(clap::Args)]
#[group(id = "policy", multiple = false)]
struct PolicyArgs {
    /// Lose what this command is too slow for; the default
    #[arg(long)]
    lossy: bool,
    /// Only the newest message, whenever there is a newer one
    #[arg(long)]
    latest: bool,
    /// Every message; the publisher waits for this command
    #[arg(long)]
    reliable: bool,
}

/// At most one of them.
#[derive(clap::Args)]
#[group(id = "start", multiple = false, conflicts_with = "latest")]
struct StartArgs {
    /// Begin at the oldest message that is still there; the default of --reliable
    #[arg(long)]
    from_oldest: bool,
    /// Begin with the next message; the default of --lossy
    #[arg(long)]
    from_now: bool,
    /// Begin with the last N messages, or as many as are still there
    #[arg(long, value_name = "N")]
    history: Option<u64>,
    /// Begin after the message with this number, or at the oldest that is still there
    #[arg(long, value_name = "SEQ")]
    after_seq: Option<u64>,
}

/// Receives it.
pub fn run(args: &Args) -> Outcome {
    if args.unsubscribe {
        return unsubscribe(args);
    }
    let interrupt = Interrupt::install()?;
    // First the file: for a mistyped path no topic is made and no slot taken.
    let mut sink = Sink::open(&args.file, &interrupt)?;
    // Before this command makes it one.
    let resumes = args.durable && args.label.as_ref().is_some_and(|label| durable(args).contains(label));
    let receiver = open(args).inspect_err(|_| sink.leave(0))?;
    let progress = Progress::new(None, args.topic.quiet || sink.is_terminal());
    let past = past(&receiver);
    // Of one that goes on, a close that it has not been told is the end of what it is still to receive.
    let closed = past.filter(|_| !resumes);
    let from = From { who: "publisher", dead: past, closed, follow: args.follow };
    let name = args.topic.shown();
    // What a subscriber to the newest message skips is not lost.
    let gaps = Gaps::new(&name, args.topic.quiet || args.policy.latest || args.format.says_gaps());
    let mut stream = Incoming { receiver, name, from, interrupt, progress };
    let mut to = Formatted::new(&mut sink, args.format, gaps, args.topic.quiet);
    let pumped = stream.pump(&mut to, args.timeout, args.count);
    to.finish();
    match pumped.and_then(|()| sink.keep()) {
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

fn open(args: &Args) -> Outcome<Subscriber> {
    let mut may_read = false;
    let opened = args.topic.open(args.read_only, |topic| {
        subscriber(topic, args).inspect_err(|error| {
            let wants_more = args.read_only || args.policy.reliable;
            may_read =
                error.kind() == ErrorKind::PermissionDenied && !wants_more && survey::inspect(&args.topic.name).is_ok();
        })
    });
    opened.map_err(|failure| if may_read { failure.and("it may be read: try --read-only") } else { failure })
}

fn subscriber(mut topic: TopicBuilder, args: &Args) -> ramway::Result<Subscriber> {
    let PolicyArgs { latest, reliable, .. } = args.policy;
    topic = match (reliable, latest) {
        (true, _) => topic.reliable(),
        (_, true) => topic.latest(),
        _ => topic.lossy(),
    };
    let StartArgs { from_oldest, from_now, history, after_seq } = args.start;
    topic = match (history, after_seq) {
        (Some(messages), _) => topic.history(messages),
        (_, Some(seq)) => topic.after_seq(seq),
        _ if from_oldest => topic.from_oldest(),
        _ if from_now => topic.from_now(),
        _ => topic,
    };
    if let Some(label) = &args.label {
        topic = topic.label(label);
    }
    topic.durable(args.durable).read_only(args.read_only).subscriber()
}

fn parse_count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("`{text}` is not a number of messages")),
    }
}

/// The labels of the durable subscribers that the topic has; none where there is no topic.
fn durable(args: &Args) -> Vec<String> {
    let topic = survey::inspect(&args.topic.name).ok().and_then(|found| found.topic);
    let durable = topic.into_iter().flat_map(|topic| topic.subscribers).filter(|one| one.durable);
    durable.filter_map(|one| one.label).collect()
}

/// Forgets a durable subscriber. It must be there: one that is made to be forgotten would hide a mistyped label.
fn unsubscribe(args: &Args) -> Outcome {
    let label = args.label.as_deref().unwrap_or_default();
    let name = args.topic.shown();
    survey::inspect(&args.topic.name)?;
    let durable = durable(args);
    if !durable.iter().any(|there| there == label) {
        let there =
            if durable.is_empty() { "it has none".to_owned() } else { format!("it has {}", durable.join(", ")) };
        let text = format!("the topic `{name}` has no durable subscriber with the label `{label}`; {there}");
        return Err(Failure::new(failure::NOT_FOUND, text));
    }
    let gone = Topic::open(&args.topic.name)
        .allow_disk(true)
        .label(label)
        .durable(true)
        .subscriber()
        .and_then(Subscriber::unsubscribe);
    match gone {
        Err(error) if error.kind() == ErrorKind::Busy => {
            let text =
                format!("the subscriber with the label `{label}` of `{name}` is attached: end its process first");
            Err(Failure::new(failure::TAKEN, text))
        }
        gone => {
            gone?;
            if !args.topic.quiet {
                output::note(&format!("`{name}` no longer keeps messages for the subscriber with the label `{label}`"));
            }
            Ok(())
        }
    }
}
