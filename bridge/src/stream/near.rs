//! The near end: what may be sent, what is released, when to go back.

use super::{Ack, End, FORGET_AFTER, Hello, Pos};
use std::collections::VecDeque;
use std::time::Duration;

/// How often an end that nobody has answered yet says hello.
const GREET_EVERY: Duration = Duration::from_millis(250);
/// After how long without an answer an end asks that waits for one, at first.
const ASK_FIRST: Duration = Duration::from_millis(200);
/// The longest time between two such questions.
const ASK_LAST: Duration = Duration::from_secs(2);
/// How often an idle end asks, so that a new receiver or a lost far end is noticed.
const ASK_IDLE: Duration = Duration::from_secs(1);

/// What is to be done after an [`Ack`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Give the frames before this one back.
    pub release: Option<u64>,
    /// Go on sending at this place.
    pub seek: Option<Pos>,
    /// Say hello now.
    pub hello: bool,
    /// Frames that a far end that is gone may have committed are sent to another one.
    pub possible_duplicates: u64,
}

/// The near end of a stream.
#[derive(Debug)]
pub struct Near {
    id: u64,
    stream: u64,
    attempt: u64,
    released: u64,
    cursor: Pos,
    /// Ends of what is under way, with its bytes.
    under_way: VecDeque<(Pos, u64)>,
    in_flight: u64,
    /// What this end allows, and what both do.
    limit: u64,
    window: u64,
    /// Machine and run of the far end that answers.
    far: Option<(u64, u64)>,
    greeted: bool,
    heard: Duration,
    ask_at: Duration,
    ask_after: Duration,
    end: Option<End>,
    /// The place that it comes right before: where the cursor was.
    end_at: Pos,
    end_is_seen: bool,
    far_end: Option<End>,
    geometry: (u32, u64),
}

impl Near {
    /// `attempt` is greater than any that an earlier process used, as far as clocks can tell; if it is not, the next hello
    /// says so. `geometry`: alignment and capacity of the segment.
    #[must_use]
    pub fn new(id: u64, stream: u64, attempt: u64, released: u64, window: u64, geometry: (u32, u64)) -> Self {
        Self {
            id,
            stream,
            attempt,
            released,
            cursor: Pos::at(released),
            under_way: VecDeque::new(),
            in_flight: 0,
            limit: window,
            window,
            far: None,
            greeted: false,
            heard: Duration::ZERO,
            ask_at: Duration::ZERO,
            ask_after: ASK_FIRST,
            end: None,
            end_at: Pos::default(),
            end_is_seen: false,
            far_end: None,
            geometry,
        }
    }

    /// Where the near end is.
    #[must_use]
    pub fn hello(&self) -> Hello {
        Hello {
            near: self.id,
            stream: self.stream,
            attempt: self.attempt,
            released: self.released,
            cursor: self.cursor,
            align: self.geometry.0,
            capacity: self.geometry.1,
            far: self.far.map_or(0, |(far, _)| far),
            end: self.end.filter(|_| self.is_at_end()),
            time: 0,
        }
    }

    /// Bytes that may be sent now. What is not under way at all may be longer than the window, or a window that is shorter
    /// than a piece would stop the stream.
    #[must_use]
    pub fn room(&self) -> u64 {
        if !self.greeted || self.is_at_end() || self.far_end.is_some() {
            0
        } else if self.under_way.is_empty() {
            self.window.max(1)
        } else {
            self.window.saturating_sub(self.in_flight)
        }
    }

    /// Something was sent, from the cursor up to `until`.
    pub fn sent(&mut self, until: Pos, bytes: u64, now: Duration) {
        if self.under_way.is_empty() {
            (self.ask_after, self.ask_at) = (ASK_FIRST, now + ASK_FIRST);
        }
        self.cursor = until;
        self.under_way.push_back((until, bytes));
        self.in_flight += bytes;
    }

    /// What was to be sent could not be: the next hello finds out what arrived.
    pub fn failed(&mut self, now: Duration) {
        self.greeted = false;
        self.ask_at = now + GREET_EVERY;
    }

    /// The far end has said where it is.
    pub fn on_ack(&mut self, ack: &Ack, now: Duration) -> Step {
        let mut step = Step::default();
        if ack.stream != self.stream {
            return step;
        }
        match self.far {
            Some((far, _)) if far != ack.far && now.saturating_sub(self.heard) < FORGET_AFTER => return step,
            Some((far, _)) if far != ack.far => {
                // The other one may have committed what it could not tell any more.
                step.possible_duplicates = self.under_way.len() as u64;
                self.greeted = false;
            }
            Some((_, run)) if run != ack.run => self.greeted = false,
            _ => {}
        }
        self.far = Some((ack.far, ack.run));
        self.heard = now;
        if ack.unknown {
            self.greeted = false;
            self.ask_at = now + GREET_EVERY;
            step.hello = true;
            return step;
        }
        if ack.expected < Pos::at(ack.committed) {
            return step;
        }
        // What an earlier process of this end had sent, or this one before it went back, has arrived after all.
        if ack.expected > self.cursor {
            self.greeted = false;
        }
        self.window = u64::from(ack.window).clamp(1, self.limit.max(1));
        self.far_end = ack.far_end;
        if let Some(end) = self.end
            && ack.end_seen == end.epoch
        {
            self.end_is_seen = true;
        }
        if ack.committed > self.released {
            self.released = ack.committed;
            step.release = Some(ack.committed);
        }
        if !self.greeted || (ack.again && ack.attempt == self.attempt) {
            // Never before what is released; a far end that has lost its segment goes on with what is left.
            let to = ack.expected.max(Pos::at(self.released));
            self.attempt += 1;
            self.greeted = true;
            self.go_to(to);
            step.seek = Some(to);
            step.hello = self.end.is_some();
        } else {
            while let Some(&(until, bytes)) = self.under_way.front()
                && until <= ack.expected
            {
                self.under_way.pop_front();
                self.in_flight -= bytes;
            }
        }
        (self.ask_after, self.ask_at) =
            if self.waits() { (ASK_FIRST, now + ASK_FIRST) } else { (ASK_FIRST, now + ASK_IDLE) };
        step
    }

    /// This is sent next, and nothing is under way.
    pub fn go_to(&mut self, to: Pos) {
        self.cursor = to;
        self.under_way.clear();
        self.in_flight = 0;
    }

    /// Whether to say hello now. Asked again at [`ask_at`](Self::ask_at) at the latest.
    pub fn on_time(&mut self, now: Duration) -> bool {
        if now < self.ask_at {
            return false;
        }
        let after = if !self.greeted {
            GREET_EVERY
        } else if self.waits() {
            self.ask_after = (self.ask_after * 2).min(ASK_LAST);
            self.ask_after
        } else {
            ASK_IDLE
        };
        self.ask_at = now + after;
        true
    }

    /// Frames before this one can be sent no more: the next hello says so.
    pub fn lost_until(&mut self, frame: u64) {
        self.released = self.released.max(frame);
        self.attempt += 1;
        self.go_to(Pos::at(self.released));
        self.greeted = false;
    }

    /// When [`on_time`](Self::on_time) is to be asked.
    #[must_use]
    pub fn ask_at(&self) -> Duration {
        self.ask_at
    }

    /// The sender has ended, and everything before is sent.
    pub fn ended(&mut self, end: End, now: Duration) {
        self.end = Some(end);
        self.end_at = self.cursor;
        self.end_is_seen = false;
        self.ask_at = now;
    }

    /// Whether the sender has ended and everything before that is sent. After going back it is sent once more first: the end goes
    /// with its place, not with the cursor.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.end.is_some() && self.cursor >= self.end_at
    }

    /// Another sender has come.
    pub fn goes_on(&mut self) {
        self.end = None;
    }

    /// The sender's end, as long as none has come after it, and whether the far end has acted upon it.
    #[must_use]
    pub fn end(&self) -> Option<(End, bool)> {
        self.end.map(|end| (end, self.end_is_seen))
    }

    /// How the far receiver ended, while nobody has taken its place.
    #[must_use]
    pub fn far_end(&self) -> Option<End> {
        self.far_end
    }

    /// The far machine.
    #[must_use]
    pub fn far(&self) -> Option<u64> {
        self.far.map(|(far, _)| far)
    }

    /// When the far end was last heard of.
    #[must_use]
    pub fn heard(&self) -> Duration {
        self.heard
    }

    /// Whether a far end has said where to begin.
    #[must_use]
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// The attempt that what is sent now belongs to.
    #[must_use]
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// What is sent next.
    #[must_use]
    pub fn cursor(&self) -> Pos {
        self.cursor
    }

    /// Frames before this one are released.
    #[must_use]
    pub fn released(&self) -> u64 {
        self.released
    }

    /// Bytes that may be under way.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Bytes under way.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Whether an answer is due.
    #[must_use]
    pub fn waits(&self) -> bool {
        !self.greeted || self.cursor > Pos::at(self.released) || self.end.is_some() && !self.end_is_seen
    }
}
