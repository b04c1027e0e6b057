//! What is special to the far end of a connection: its one receiver can end, its near end can be gone, and either is the end of it.

use super::{CHECK_INTERVAL, Came, Finish, Import, No, Running};
use crate::counters;
use crate::stream::{End, Ending, Far};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// After how long without a word the near end of a connection is asked, and how often.
const ASK_AFTER: Duration = Duration::from_secs(2);
const ASK_EVERY: Duration = Duration::from_secs(1);

impl Running {
    /// A connection ends with the first of many things, which are looked for while nothing comes.
    pub(super) fn on_silence_of_connection(&mut self) -> Result<(), No> {
        if self.sink.is_none() {
            self.open_sink()?;
        }
        if let Some(how) = self.sink.as_mut().and_then(|sink| sink.has_ended()) {
            return self.receiver_has_ended(how);
        }
        self.ask_whether_it_is_there()
    }

    /// A near end says hello every second or two. One that does not is asked, and where the other bridge knows nothing of it,
    /// that says so.
    pub(super) fn ask_whether_it_is_there(&mut self) -> Result<(), No> {
        if self.is_broken_for_long() {
            counters::add(&self.import.counters.ejected, 1);
            return Err(No::Over(Finish::Lost));
        }
        let heard = self.near.map_or(self.asked, |(_, heard)| heard);
        if heard.elapsed() < ASK_AFTER || self.asked.elapsed() < ASK_EVERY {
            return Ok(());
        }
        self.asked = Instant::now();
        match (&self.far, self.import.of) {
            (None, Some((other, connection))) => self.say(other, &self.unknown(connection, 0)),
            _ => self.ack(),
        }
    }

    /// The receiver of a connection has ended, and no other one can come: the near end is told until it knows.
    pub(super) fn receiver_has_ended(&mut self, how: Ending) -> Result<(), No> {
        if how == Ending::Closed && self.import.leaves_quietly {
            return Err(No::Over(Finish::Left));
        }
        counters::add(&self.import.counters.ends, 1);
        let end = End { how, epoch: self.sink.as_ref().map_or(1, |sink| sink.peer_epoch().max(1)) };
        self.leave_sink();
        self.backlog.clear();
        if let Some(far) = &mut self.far {
            far.set_far_end(Some(end));
        }
        self.ack()?;
        while !self.import.stop.load(Ordering::Relaxed) {
            match self.came.recv_timeout(CHECK_INTERVAL) {
                Ok(Came::Hello(hello)) => {
                    self.near = Some((hello.near, Instant::now()));
                    let Import { machine, run, .. } = self.import;
                    let far = self.far.get_or_insert_with(|| Far::new(machine, run, &hello, hello.released, 1));
                    far.set_far_end(Some(end));
                    self.ack()?;
                }
                Ok(Came::Data(..)) | Err(mpsc::RecvTimeoutError::Timeout) => {}
                Ok(Came::Over) | Err(mpsc::RecvTimeoutError::Disconnected) => return Err(No::Over(Finish::Left)),
            }
            self.ask_whether_it_is_there()?;
        }
        Err(No::Stopped)
    }
}
