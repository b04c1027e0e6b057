//! The far end: what is taken, what was taken before, what is missing.

use super::{Ack, End, Hello, Pos, Record};

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The next one.
    Take,
    /// Here already.
    Have,
    /// Not the next one: something before it is missing.
    Gap,
}

/// The far end of a stream.
#[derive(Debug)]
pub struct Far {
    id: u64,
    run: u64,
    stream: u64,
    attempt: u64,
    committed: u64,
    expected: Pos,
    again: bool,
    end_seen: u32,
    far_end: Option<End>,
    window: u32,
}

impl Far {
    /// `committed`: the first frame that is not in the far segment yet. `run` is another one in every process.
    #[must_use]
    pub fn new(id: u64, run: u64, hello: &Hello, committed: u64, window: u32) -> Self {
        let expected = Pos::at(committed);
        Self {
            id,
            run,
            stream: hello.stream,
            attempt: hello.attempt,
            committed,
            expected,
            again: false,
            end_seen: 0,
            far_end: None,
            window,
        }
    }

    /// The near end has said where it is. True: its sender has ended, everything before is here, and that is to be acted upon.
    pub fn on_hello(&mut self, hello: &Hello) -> bool {
        if hello.stream != self.stream {
            return false;
        }
        // What is expected cannot come any more: a topic's publisher has let the near subscriber go.
        if hello.released > self.expected.frame {
            self.committed = hello.released;
            self.expected = Pos::at(hello.released);
        }
        if hello.attempt != self.attempt {
            (self.attempt, self.again) = (hello.attempt, false);
        }
        self.again |= hello.cursor > self.expected;
        hello.end.is_some_and(|end| end.epoch != self.end_seen && hello.cursor == Pos::at(self.committed))
    }

    /// What to do with a record. A piece that begins within what is here is dropped whole: the near end cuts a message in
    /// other places only after it went back to what is expected.
    pub fn judge(&mut self, attempt: u64, record: &Record) -> Judgement {
        if attempt > self.attempt {
            (self.attempt, self.again) = (attempt, false);
        }
        if record.start == self.expected {
            Judgement::Take
        } else if record.start < self.expected {
            Judgement::Have
        } else {
            // What is late of an earlier attempt says nothing of this one.
            self.again |= attempt == self.attempt;
            Judgement::Gap
        }
    }

    /// A record's `len` bytes are taken.
    pub fn taken(&mut self, record: &Record, len: u32) {
        self.expected = record.after(len);
        self.again = false;
    }

    /// Everything before this frame is committed.
    pub fn committed(&mut self, frame: u64) {
        self.committed = frame;
    }

    /// What was taken and not committed is gone.
    pub fn forget_taken(&mut self) {
        self.expected = Pos::at(self.committed);
        self.again = true;
    }

    /// The end of the near sender was acted upon.
    pub fn end_seen(&mut self, end: End) {
        self.end_seen = end.epoch;
    }

    /// How the far receiver ended; `None`: somebody is there again.
    pub fn set_far_end(&mut self, end: Option<End>) {
        self.far_end = end;
    }

    /// What is expected next.
    #[must_use]
    pub fn expected(&self) -> Pos {
        self.expected
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> u64 {
        self.stream
    }

    /// Where the far end is.
    #[must_use]
    pub fn ack(&self) -> Ack {
        Ack {
            far: self.id,
            stream: self.stream,
            attempt: self.attempt,
            run: self.run,
            committed: self.committed,
            expected: self.expected,
            again: self.again,
            unknown: false,
            far_end: self.far_end,
            end_seen: self.end_seen,
            window: self.window,
        }
    }
}
