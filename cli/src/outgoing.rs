//! What `send` and `pub` share: input is cut into messages, which go into a ring or a topic.

mod input;

use std::time::{Duration, Instant};

use ramway::ring::log::{Log, Shape};
use ramway::{ErrorKind, Sender, Slot};

use crate::failure::{self, Failure, Outcome};
use crate::interrupt::{Interrupt, SLICE};
use crate::progress::Progress;
use crate::units::{parse_some_size, parse_type_id};
use input::Cut;
pub use input::Input;

/// What is read at once where messages are cut out of a buffer; frames from this size on are read in place.
const BUFFER: usize = 256 << 10;

/// How often a side that waits for the other one checks again.
const AGAIN: Duration = Duration::from_millis(20);

/// Where messages end in the input, and what they carry.
#[derive(clap::Args)]
pub struct MessageArgs {
    /// Make each line one message, its newline included
    #[arg(long, conflicts_with_all = ["frame", "whole"])]
    lines: bool,
    /// Cut the input into messages of this many bytes (the last one may be shorter); 64K, 1.5M, 1MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_some_size, conflicts_with = "whole")]
    frame: Option<u64>,
    /// Make each FILE, or all of standard input, one message, also if it is empty
    #[arg(long)]
    whole: bool,
    /// The type id that every message carries
    #[arg(long, value_name = "N", default_value = "0", value_parser = parse_type_id)]
    type_id: u32,
}

/// The other side of what is written into: who makes room there, and when that is known to have ended.
pub trait Readers<L: Log> {
    /// What is written into.
    const LOG: &'static str;
    /// Who makes room.
    const READER: &'static str;
    /// Without `--lines`, `--frame` and `--whole` no message takes more than this part of the capacity.
    const CHUNKS: usize;

    /// Fails if nobody is left whom further input could reach. Asked while there is no input.
    fn check(&self, sender: &Sender<L>) -> Outcome;

    /// Fails if what is written and not taken is not going to be taken. Asked once everything is written.
    fn check_taken(&self, sender: &Sender<L>) -> Outcome;

    /// A call found this end (`Closed` or `PeerDead`); before it, the other side had this epoch. Fails unless a successor is to
    /// be waited for.
    fn ended(&self, epoch: u32, error: &ramway::Error) -> Outcome;

    /// How many bytes are not taken yet by those who are waited for.
    fn untaken(&self, sender: &Sender<L>) -> usize;
}

/// The writing end, with what decides when to give up.
pub struct Outgoing<L: Log, R> {
    pub sender: Sender<L>,
    pub readers: R,
    pub name: String,
    pub timeout: Option<Duration>,
    pub interrupt: Interrupt,
    pub progress: Progress,
}

impl<L: Log, R: Readers<L>> Outgoing<L, R> {
    /// Writes all of the input, cut as `args` say.
    pub fn pump(&mut self, input: &mut Input, args: &MessageArgs) -> Outcome {
        let longest = self.sender.max_message_len();
        let type_id = args.type_id;
        match args.frame {
            Some(frame) if frame > longest as u64 => Err(Failure::error(format!(
                "messages of {frame} bytes can never fit: `{}` has a capacity of {} bytes and takes at most {longest} a message; \
                 choose --frame {longest} or less, or make the {} with a larger --capacity",
                self.name,
                self.sender.capacity(),
                R::LOG
            ))),
            Some(frame) if frame as usize >= BUFFER => self.whole_frames(input, frame as usize, type_id),
            Some(frame) => self.cut(input, Cut::Frames(frame as usize), type_id),
            None if args.lines => self.cut(input, Cut::Lines, type_id),
            None if args.whole => self.whole(input, type_id),
            None => {
                let chunk = self.sender.capacity() / R::CHUNKS - <L as Shape>::HEADER as usize;
                self.chunks(input, chunk.min(longest), type_id)
            }
        }
    }

    /// Messages as long as one read gives them, read in place.
    fn chunks(&mut self, input: &mut Input, chunk: usize, type_id: u32) -> Outcome {
        loop {
            self.wait_for(input)?;
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
    fn whole_frames(&mut self, input: &mut Input, frame: usize, type_id: u32) -> Outcome {
        loop {
            self.wait_for(input)?;
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

    /// One message.
    fn whole(&mut self, input: &mut Input, type_id: u32) -> Outcome {
        let longest = self.sender.max_message_len();
        let mut buffer = Vec::new();
        let mut held = 0;
        loop {
            self.wait_for(input)?;
            if held == buffer.len() {
                // One more than fits, so that what is too long shows.
                buffer.resize((held * 2).max(BUFFER).min(longest + 1), 0);
            }
            match input.read(&mut buffer[held..])? {
                0 => break,
                count => held += count,
            }
            if held > longest {
                return Err(self.too_long(&format!("{}, of more than", input.name), longest));
            }
        }
        self.put(&buffer[..held], type_id)?;
        self.sender.flush()?;
        self.progress.add(held as u64, 1);
        Ok(())
    }

    /// Small messages, cut out of a buffer; all that one read gives are published together.
    fn cut(&mut self, input: &mut Input, cut: Cut, type_id: u32) -> Outcome {
        let longest = self.sender.max_message_len();
        let mut buffer = vec![0_u8; BUFFER];
        // Bytes at the start of the buffer that do not make a whole message yet.
        let mut held = 0;
        loop {
            self.wait_for(input)?;
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
                self.put(&buffer[begin..begin + len], type_id)?;
                begin += len;
                searched = begin;
                messages += 1;
            }
            held = end - begin;
            if count == 0 && held > 0 {
                self.put(&buffer[begin..end], type_id)?;
                (begin, held, messages) = (end, 0, messages + 1);
            }
            self.sender.flush()?;
            self.progress.add(begin as u64, messages);
            if count == 0 {
                return Ok(());
            }
            if held > longest {
                return Err(self.too_long("a line of more than", longest));
            }
            buffer.copy_within(begin..end, 0);
        }
    }

    fn too_long(&self, what: &str, longest: usize) -> Failure {
        Failure::error(format!(
            "{what} {longest} bytes can never fit into `{}`: make the {} with a larger --capacity",
            self.name,
            R::LOG
        ))
    }

    fn wait_for(&self, input: &Input) -> Outcome {
        input.wait(&self.interrupt, || self.readers.check(&self.sender))
    }

    fn put(&mut self, message: &[u8], type_id: u32) -> Outcome {
        self.with_slot(message.len(), |mut slot| {
            slot.copy_from_slice(message);
            Ok(slot.with_type_id(type_id).commit_unflushed(message.len())?)
        })
    }

    /// Calls `fill` with room for `len` bytes, as soon as there is some.
    fn with_slot<T>(&mut self, len: usize, fill: impl FnOnce(Slot<'_, L>) -> Outcome<T>) -> Outcome<T> {
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
            // Before the call: asked afterwards, a successor that came in between would pass for the one that has ended.
            let epoch = self.sender.peer_epoch();
            let error = match self.sender.reserve_timeout(len, SLICE.min(self.timeout.unwrap_or(SLICE))) {
                Ok(slot) => return fill(slot),
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::TimedOut | ErrorKind::Full => {}
                ErrorKind::Closed | ErrorKind::PeerDead => {
                    self.readers.ended(epoch, &error)?;
                    std::thread::sleep(AGAIN);
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
                    format!("timed out: no {} made room in `{}` for {:?}", R::READER, self.name, moved.elapsed()),
                ));
            }
        }
    }

    /// Everything is written: says so unless the other side is known to be lost; with `wait`, once it is taken.
    pub fn finish(&mut self, wait: bool) -> Outcome {
        self.sender.flush()?;
        let mut left = self.readers.untaken(&self.sender);
        let mut moved = Instant::now();
        while left > 0 {
            self.readers.check_taken(&self.sender)?;
            if !wait {
                break;
            }
            self.interrupt.check()?;
            std::thread::sleep(Duration::from_millis(2));
            let now = self.readers.untaken(&self.sender);
            if now < left {
                moved = Instant::now();
            }
            left = now;
            if self.timeout.is_some_and(|timeout| moved.elapsed() >= timeout) {
                let text = format!("timed out: no {} took the last {left} bytes of `{}`", R::READER, self.name);
                return Err(Failure::new(failure::TIMED_OUT, text));
            }
        }
        Ok(())
    }
}
