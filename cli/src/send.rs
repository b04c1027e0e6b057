//! `ramway send`: a file or standard input into a named ring.

mod input;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ramway::{ErrorKind, RingBuilder, Sender, Slot, survey};

use crate::failure::{self, Failure, Outcome, has_text};
use crate::interrupt::{Interrupt, SLICE};
use crate::output;
use crate::progress::Progress;
use crate::ring::RingArgs;
use crate::units::{parse_duration, parse_some_size, parse_type_id, size};
use input::{Cut, Input};

/// What is read at once where messages are cut out of a buffer; frames from this size on are read in place.
const BUFFER: usize = 256 << 10;

const NOTES: &str = "\
Sends FILE, or standard input, as messages into the ring NAME, which is made
if it is not there yet. Either side may be started first. What fits into the
ring is sent without a receiver and waits for the next one, also after this
command has ended; two sends before a recv reach it as one stream.

Without --lines and --frame, messages are as long as reading gives them, up to
a quarter of the ring.
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
    /// Make each line one message, its newline included
    #[arg(long, conflicts_with = "frame")]
    lines: bool,
    /// Cut the input into messages of this many bytes (the last one may be shorter); 64K, 1.5M, 1MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_some_size)]
    frame: Option<u64>,
    /// The type id that every message carries
    #[arg(long, value_name = "N", default_value = "0", value_parser = parse_type_id)]
    type_id: u32,
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
    let mut stream = Stream::new(sender, args, interrupt, progress);
    if let Err(failure) = stream.pump(&mut input, args) {
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

/// The sending end, with what decides when to give up.
struct Stream {
    sender: Sender,
    name: String,
    timeout: Option<Duration>,
    type_id: u32,
    interrupt: Interrupt,
    progress: Progress,
    /// The receiver that had already ended when this sender came: its end is not ours to report.
    past: Option<u32>,
}

impl Stream {
    fn new(sender: Sender, args: &Args, interrupt: Interrupt, progress: Progress) -> Self {
        let epoch = sender.peer_epoch();
        let past = (!sender.is_peer_alive()).then_some(epoch);
        let name = args.ring.name.display().to_string();
        Self { sender, name, timeout: args.timeout, type_id: args.type_id, interrupt, progress, past }
    }

    fn pump(&mut self, input: &mut Input, args: &Args) -> Outcome {
        let longest = self.sender.max_message_len();
        match args.frame {
            Some(frame) if frame > longest as u64 => Err(Failure::error(format!(
                "messages of {frame} bytes can never fit: `{}` has a capacity of {} bytes and takes at most {longest} a message; \
                 choose --frame {longest} or less, or make the ring with a larger --capacity",
                self.name,
                self.sender.capacity()
            ))),
            Some(frame) if frame as usize >= BUFFER => self.whole_frames(input, frame as usize),
            Some(frame) => self.cut(input, Cut::Frames(frame as usize)),
            None if args.lines => self.cut(input, Cut::Lines),
            None => {
                self.chunks(input, (self.sender.capacity() / 4 - ramway::layout::FRAME_HEADER as usize).min(longest))
            }
        }
    }

    /// Messages as long as one read gives them, read in place.
    fn chunks(&mut self, input: &mut Input, chunk: usize) -> Outcome {
        let type_id = self.type_id;
        loop {
            input.wait(&self.interrupt, || lost(&self.sender, self.past, &self.name))?;
            let count = self.with_slot(chunk, |mut slot| {
                let count = input.read(&mut slot)?;
                if count > 0 {
                    slot.with_type_id(type_id).commit(count)?;
                }
                Ok(count)
            })?;
            if count == 0 {
                return Ok(());
            }
            self.progress.add(count as u64, 1);
        }
    }

    /// Messages of exactly this length but the last, read in place.
    fn whole_frames(&mut self, input: &mut Input, frame: usize) -> Outcome {
        let type_id = self.type_id;
        loop {
            input.wait(&self.interrupt, || lost(&self.sender, self.past, &self.name))?;
            // Taken out of `self` for as long as the slot borrows it.
            let interrupt = self.interrupt.clone();
            let count = self.with_slot(frame, |mut slot| {
                let mut filled = 0;
                while filled < frame {
                    input.wait(&interrupt, || Ok(()))?;
                    match input.read(&mut slot[filled..])? {
                        0 => break,
                        count => filled += count,
                    }
                }
                if filled > 0 {
                    slot.with_type_id(type_id).commit(filled)?;
                }
                Ok(filled)
            })?;
            self.progress.add(count as u64, u64::from(count > 0));
            if count < frame {
                return Ok(());
            }
        }
    }

    /// Small messages, cut out of a buffer; all that one read gives are published together.
    fn cut(&mut self, input: &mut Input, cut: Cut) -> Outcome {
        let longest = self.sender.max_message_len();
        let mut buffer = vec![0_u8; BUFFER];
        // Bytes at the start of the buffer that do not make a whole message yet.
        let mut held = 0;
        loop {
            input.wait(&self.interrupt, || lost(&self.sender, self.past, &self.name))?;
            if held == buffer.len() {
                buffer.resize((held * 2).min(longest + 1), 0);
            }
            let count = input.read(&mut buffer[held..])?;
            let end = held + count;
            let mut begin = 0;
            // What was held has no end in it: the search goes on behind it.
            let mut searched = held;
            let mut messages = 0;
            while let Some(len) = cut.first(&buffer[begin..end], searched - begin) {
                self.put(&buffer[begin..begin + len])?;
                begin += len;
                searched = begin;
                messages += 1;
            }
            held = end - begin;
            if count == 0 && held > 0 {
                self.put(&buffer[begin..end])?;
                (begin, held, messages) = (end, 0, messages + 1);
            }
            self.sender.flush()?;
            self.progress.add(begin as u64, messages);
            if count == 0 {
                return Ok(());
            }
            if held > longest {
                return Err(Failure::error(format!(
                    "a line of more than {longest} bytes can never fit into `{}`: make the ring with a larger --capacity",
                    self.name
                )));
            }
            buffer.copy_within(begin..end, 0);
        }
    }

    fn put(&mut self, message: &[u8]) -> Outcome {
        let type_id = self.type_id;
        self.with_slot(message.len(), |mut slot| {
            slot.copy_from_slice(message);
            Ok(slot.with_type_id(type_id).commit_unflushed(message.len())?)
        })
    }

    /// Calls `fill` with room for `len` bytes, as soon as there is some.
    fn with_slot<T>(&mut self, len: usize, fill: impl FnOnce(Slot<'_>) -> Outcome<T>) -> Outcome<T> {
        match self.sender.try_reserve(len) {
            Ok(slot) => return fill(slot),
            Err(error) if matches!(error.kind(), ErrorKind::Full | ErrorKind::Closed | ErrorKind::PeerDead) => {}
            Err(error) => return Err(error.into()),
        }
        let begun = Instant::now();
        let mut free = self.sender.capacity() - self.sender.len();
        let mut moved = begun;
        loop {
            self.interrupt.check()?;
            let error = match self.sender.reserve_timeout(len, SLICE.min(self.timeout.unwrap_or(SLICE))) {
                Ok(slot) => return fill(slot),
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::TimedOut | ErrorKind::Full => {}
                ErrorKind::Closed | ErrorKind::PeerDead => {
                    if has_text(&error) || self.past != Some(self.sender.peer_epoch()) {
                        return Err(ended(&error, &self.name));
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => return Err(error.into()),
            }
            let now_free = self.sender.capacity() - self.sender.len();
            if now_free > free {
                (free, moved) = (now_free, Instant::now());
            }
            if self.timeout.is_some_and(|timeout| moved.elapsed() >= timeout) {
                return Err(Failure::new(
                    failure::TIMED_OUT,
                    format!("timed out: no receiver made room in `{}` for {:?}", self.name, moved.elapsed()),
                ));
            }
        }
    }

    /// Everything is in the ring: says so unless the receiver is known to be lost; with `wait`, once it is taken.
    fn finish(&mut self, wait: bool) -> Outcome {
        self.sender.flush()?;
        let mut left = self.sender.len();
        let mut moved = Instant::now();
        while left > 0 {
            lost(&self.sender, self.past, &self.name)?;
            if !wait {
                break;
            }
            self.interrupt.check()?;
            std::thread::sleep(Duration::from_millis(2));
            let now = self.sender.len();
            if now < left {
                moved = Instant::now();
            }
            left = now;
            if self.timeout.is_some_and(|timeout| moved.elapsed() >= timeout) {
                let text = format!("timed out: no receiver took the last {left} bytes of `{}`", self.name);
                return Err(Failure::new(failure::TIMED_OUT, text));
            }
        }
        Ok(())
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
