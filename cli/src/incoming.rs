//! What `recv` and `sub` share: messages of a ring or a topic are written out, until their sender ends.

mod sink;

use std::time::{Duration, Instant};

use ramway::ring::log::Log;
use ramway::{Batch, ErrorKind, Receiver};

use crate::failure::{self, Failure, Outcome, has_text};
use crate::interrupt::{Interrupt, SLICE};
use crate::progress::Progress;
pub use sink::Sink;

/// Messages that are written with one call and then given back to the sender together.
const BATCH: u64 = 512;

/// How often a side whose sender is gone checks for the next one.
const AGAIN: Duration = Duration::from_millis(20);

/// How messages are written.
pub trait Write<L: Log> {
    /// Writes the messages of a batch. Gives how many bytes of payload and messages they were.
    fn batch(&mut self, interrupt: &Interrupt, batch: &mut Batch<'_, L>) -> Outcome<(u64, u64)>;

    /// This subscriber was ejected: so many messages are lost before the next one. Never of a ring.
    fn lagged(&mut self, lost: u64);

    /// Called at least every [`SLICE`] while messages are waited for.
    fn idle(&mut self) {}
}

/// Who writes into the log.
pub struct From {
    /// `sender` or `publisher`.
    pub who: &'static str,
    /// The one that had already died when this side came. Its death is no news unless it left something behind.
    pub dead: Option<u32>,
    /// The one that had already closed when this side came, where its close is no news either.
    pub closed: Option<u32>,
    /// No end is an end: the next one is waited for.
    pub follow: bool,
}

/// The sender that has ended before this side came.
pub fn past<L: Log>(receiver: &Receiver<L>) -> Option<u32> {
    // In this order: a successor that comes in between is alive.
    let epoch = receiver.peer_epoch();
    (!receiver.is_peer_alive()).then_some(epoch)
}

/// The reading end, with what decides when it is done.
pub struct Incoming<L: Log> {
    pub receiver: Receiver<L>,
    pub name: String,
    pub from: From,
    pub interrupt: Interrupt,
    pub progress: Progress,
}

impl<L: Log> Incoming<L> {
    /// Writes what comes, until the sender closes or `count` messages are written.
    pub fn pump(&mut self, to: &mut impl Write<L>, timeout: Option<Duration>, count: Option<u64>) -> Outcome {
        let mut moved = Instant::now();
        loop {
            self.interrupt.check()?;
            let left = count.map_or(BATCH, |count| BATCH.min(count - self.progress.messages()));
            if left == 0 {
                return Ok(());
            }
            let slice = SLICE.min(timeout.unwrap_or(SLICE));
            // Before the call: whose end that finds is not older than this. Asked afterwards, a successor that came in between
            // would pass for the one that has ended.
            let epoch = self.receiver.peer_epoch();
            let error = match self.receiver.recv_batch_timeout(left as usize, slice) {
                Ok(mut batch) => {
                    let written = to.batch(&self.interrupt, &mut batch);
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
            to.idle();
            match error.kind() {
                ErrorKind::TimedOut | ErrorKind::Empty | ErrorKind::Interrupted => {}
                ErrorKind::Lagged => {
                    to.lagged(error.lost().unwrap_or(0));
                    moved = Instant::now();
                    continue;
                }
                ErrorKind::Closed if has_text(&error) => return Err(error.into()),
                ErrorKind::Closed | ErrorKind::PeerDead if self.from.follow => std::thread::sleep(AGAIN),
                ErrorKind::Closed if !self.is_past(epoch, self.from.closed) => return Ok(()),
                ErrorKind::PeerDead if !self.is_past(epoch, self.from.dead) => return Err(self.died()),
                // The end of one that left nothing behind is not news: its successor is waited for.
                ErrorKind::Closed | ErrorKind::PeerDead => std::thread::sleep(AGAIN),
                _ => return Err(error.into()),
            }
            if timeout.is_some_and(|timeout| moved.elapsed() >= timeout) {
                let Self { from: From { who, .. }, name, .. } = self;
                let text = format!("timed out: no {who} sent anything into `{name}` for {:?}", moved.elapsed());
                return Err(Failure::new(failure::TIMED_OUT, text));
            }
        }
    }

    /// Whether an end can be that of one who had ended before, and has left nothing behind.
    fn is_past(&self, epoch: u32, past: Option<u32>) -> bool {
        self.progress.messages() == 0 && past == Some(epoch)
    }

    fn died(&self) -> Failure {
        Failure::new(
            failure::PEER_DIED,
            format!(
                "the {} of `{}` died (or gave up) before its end: {} byte(s) in {} message(s) were received",
                self.from.who,
                self.name,
                self.progress.bytes(),
                self.progress.messages()
            ),
        )
    }
}
