//! The far end of a reliable stream at work: a thread that writes what comes from the link into a local segment.

mod answer;
mod connection;

use crate::config::OnDisconnect;
use crate::counters::{self, Counters};
use crate::link::{Link, Outlet, Payload};
use crate::local::Sink;
use crate::log;
use crate::place::{self, Ledger};
use crate::rpc::Transit;
use crate::stream::{End, Ending, FORGET_AFTER, Far, Hello, Judgement, Record};
use crate::wire;
use ramway::ErrorKind;
use ramway::ring::raw::WaitLimit;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The longest that a wait takes before the thread checks what else there is.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// How long what is committed may wait to be confirmed, so that many messages share one answer. Nobody waits for it but a sender
/// whose segment is full, and that is answered by [`Running::is_due`].
const ACK_DELAY: Duration = Duration::from_millis(2);

/// What has come for a stream.
pub enum Came {
    /// A near end says where it is.
    Hello(Hello),
    /// Data, and when it came.
    Data(Payload, Instant),
    /// Of a connection: there is no near end any more.
    Over,
}

/// Takes a local sender's role; it is told the near segment's alignment and capacity.
pub type OpenSink = Box<dyn Fn(u32, u64) -> ramway::Result<Box<dyn Sink>> + Send>;

/// What a far end is about.
pub struct Import {
    /// The link.
    pub link: Link,
    /// What its keys begin with.
    pub base: String,
    /// `ring` or `topic`, as in keys.
    pub kind: &'static str,
    /// The segment's name.
    pub name: String,
    /// Of a connection's stream: the machine at its other end, which knows of it, and its number. An end is final then, and nothing
    /// is kept for a successor.
    pub of: Option<(u64, u64)>,
    /// Of a connection to an RPC server: that it closes is told by the stream of its replies alone. A client that heard of it before
    /// the last of them would take its call for one that was not run.
    pub leaves_quietly: bool,
    /// This machine.
    pub machine: u64,
    /// Another one in every process.
    pub run: u64,
    /// Bytes that may be under way.
    pub window: u64,
    /// What a broken link does.
    pub on_disconnect: OnDisconnect,
    /// Takes the local sender's role.
    pub open: OpenSink,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// The bridge is to end.
    pub stop: Arc<AtomicBool>,
}

struct Room {
    to: *mut u8,
    len: u32,
    /// When its beginning came.
    since: Instant,
    /// Of a call: by how much that was later than it might have been.
    late: Duration,
}

struct Running {
    import: Import,
    came: mpsc::Receiver<Came>,
    backlog: VecDeque<Came>,
    backlog_bytes: u64,
    sink: Option<Box<dyn Sink>>,
    far: Option<Far>,
    /// Of the near segment.
    align: u32,
    capacity: u64,
    /// Of the message that is being taken.
    room: Option<Room>,
    /// Frames before this one are written and not visible yet.
    written: Option<u64>,
    /// Frames before this one may be here already, by an earlier process.
    doubtful: u64,
    near: Option<(u64, Instant)>,
    back: Option<(u64, Outlet)>,
    /// Bytes that came since the last answer, and when the next one is due.
    unanswered: u64,
    answer_at: Option<Instant>,
    complaint: log::Once,
    begun: Instant,
    transit: Transit,
    /// Of a connection: when its near end was asked last whether it is there.
    asked: Instant,
}

/// Why a far end is over that is of a connection; else it goes on until the bridge ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The near sender has ended, and the local receiver was told so.
    Ended(Ending),
    /// The local receiver has ended, and the near end knows.
    Left,
    /// The bridge ends.
    Stopped,
    /// The near end is gone, or silent for too long, or something failed.
    Lost,
}

/// Why a wait ended without what was waited for.
enum No {
    Stopped,
    Failed(String),
    /// Of a connection: it is over.
    Over(Finish),
}

impl Import {
    /// Writes what comes until the bridge ends, or the connection does.
    pub fn run(self, came: mpsc::Receiver<Came>) -> Finish {
        let listed = self.of.is_none().then(|| self.counters.clone());
        listed.iter().for_each(|counters| counters::add(&counters.streams, 1));
        let mut running = Running {
            import: self,
            came,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            sink: None,
            far: None,
            align: 0,
            capacity: 0,
            room: None,
            written: None,
            doubtful: 0,
            near: None,
            back: None,
            unanswered: 0,
            answer_at: None,
            complaint: log::Once::default(),
            begun: Instant::now(),
            transit: Transit::default(),
            asked: Instant::now(),
        };
        let finish = running.run();
        running.leave_sink();
        listed.iter().for_each(|counters| counters::sub(&counters.streams, 1));
        finish
    }
}

impl Running {
    fn run(&mut self) -> Finish {
        if let Some((other, _)) = self.import.of {
            self.near = Some((other, Instant::now()));
        }
        while !self.import.stop.load(Ordering::Relaxed) {
            if self.answer_at.is_some_and(|at| at <= Instant::now())
                && let Err(No::Failed(text)) = self.ack()
            {
                self.fail(&text);
            }
            let next = match self.backlog.pop_front() {
                Some(came) => came,
                None => match self.came.recv_timeout(self.longest_wait()) {
                    Ok(came) => came,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        match self.on_silence().err().and_then(|no| self.failed(no)) {
                            None => continue,
                            Some(finish) => return finish,
                        }
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => return Finish::Stopped,
                },
            };
            let done = match next {
                Came::Hello(hello) => self.on_hello(&hello),
                Came::Data(payload, since) => {
                    self.backlog_bytes = self.backlog_bytes.saturating_sub(payload.len() as u64);
                    self.on_data(&payload, since)
                }
                // The sender's end would have come before.
                Came::Over => Err(No::Over(Finish::Lost)),
            };
            if let Some(finish) = done.err().and_then(|no| self.failed(no)) {
                return finish;
            }
        }
        Finish::Stopped
    }

    /// Why it is over, if it is.
    fn failed(&mut self, no: No) -> Option<Finish> {
        match no {
            No::Stopped => Some(Finish::Stopped),
            No::Over(finish) => Some(finish),
            No::Failed(text) => {
                self.fail(&text);
                self.import.of.map(|_| Finish::Lost)
            }
        }
    }

    fn longest_wait(&self) -> Duration {
        self.answer_at.map_or(CHECK_INTERVAL, |at| at.saturating_duration_since(Instant::now()).min(CHECK_INTERVAL))
    }

    /// Whether what has come is to be confirmed at once: it is a good part of what the near end may have under way, or of what its
    /// segment holds; or something is missing.
    fn is_due(&self) -> bool {
        let part = self.import.window.min(self.capacity) / 8;
        self.unanswered >= part || self.far.as_ref().is_some_and(|far| far.ack().again)
    }

    /// Something is wrong that a person may put right: it is said once, and tried again at the next hello.
    fn fail(&mut self, text: &str) {
        let Import { kind, name, .. } = &self.import;
        self.complaint.say(&format!("import of the {kind} '{name}': {text}"));
        self.leave_sink();
        self.far = None;
        self.written = None;
    }

    /// Gives the local role up as if this process had been killed: the receiver is to know that this was not all.
    fn leave_sink(&mut self) {
        self.room = None;
        if let Some(mut sink) = self.sink.take() {
            sink.abort();
            sink.flush();
            sink.leave(Ending::Dead);
        }
    }

    /// Where the rule says so, a link that is broken for long is a sender that died.
    fn on_silence(&mut self) -> Result<(), No> {
        if self.import.of.is_some() {
            return self.on_silence_of_connection();
        }
        if self.is_broken_for_long() && self.sink.is_some() {
            counters::add(&self.import.counters.ejected, 1);
            self.leave_sink();
            if let Some(far) = &mut self.far {
                // A message of which a part was here comes again whole.
                far.forget_taken();
            }
        }
        Ok(())
    }

    fn is_broken_for_long(&self) -> bool {
        self.near.is_some_and(|(_, heard)| self.import.on_disconnect.gives_up_after(heard.elapsed()))
    }

    /// Whether a machine is the one that this name comes from.
    fn is_mine(&mut self, near: u64) -> bool {
        let now = Instant::now();
        match self.near {
            Some((mine, heard)) if mine != near && now - heard < FORGET_AFTER => {
                let Import { kind, name, .. } = &self.import;
                self.complaint.say(&format!(
                    "import of the {kind} '{name}': machine {near:016x} exports it too, and it comes from {mine:016x}; give one of \
                     them a prefix of its own"
                ));
                false
            }
            _ => {
                self.near = Some((near, now));
                true
            }
        }
    }

    fn on_hello(&mut self, hello: &Hello) -> Result<(), No> {
        if !self.is_mine(hello.near) {
            return Ok(());
        }
        let is_new = self.far.as_ref().is_none_or(|far| far.stream() != hello.stream);
        if is_new {
            if hello.align == 0 {
                // It asks only whether anybody is here.
                return self.say(hello.near, &self.unknown(hello.stream, hello.attempt));
            }
            self.begin(hello)?;
        }
        let Some(far) = &mut self.far else { return Ok(()) };
        if self.import.of.is_some() && hello.time != 0 {
            // What is fast over this link; that a hello is late says nothing.
            self.transit.late(hello.time, self.begun.elapsed());
        }
        let before = far.expected();
        let ends = far.on_hello(hello);
        let skipped = far.expected() > before;
        if skipped {
            self.skip(before.frame, hello.released)?;
        }
        if ends && let Some(end) = hello.end {
            self.end(end)?;
        }
        self.ack()
    }

    /// A stream that is new to this process.
    fn begin(&mut self, hello: &Hello) -> Result<(), No> {
        (self.align, self.capacity) = (hello.align, hello.capacity);
        self.room = None;
        self.written = None;
        if self.import.of.is_some() {
            self.open_sink()?;
            let window = u32::try_from(self.import.window).unwrap_or(u32::MAX);
            self.far = Some(Far::new(self.import.machine, self.import.run, hello, hello.released, window));
            return Ok(());
        }
        let ledger = Ledger::read(self.import.kind, &self.import.name);
        let had = self.sink.is_some();
        self.open_sink()?;
        let segment = self.segment()?;
        let sink = self.sink.as_mut().expect("opened above");
        let (at, epoch) = (sink.at(), sink.epoch());
        let of_this = ledger.filter(|ledger| ledger.stream == hello.stream && ledger.segment == segment);
        self.doubtful = 0;
        let committed = match of_this {
            // Nobody else has been the sender since: what the segment holds says how far it came.
            Some(ledger) if had || ledger.epoch.wrapping_add(1) == epoch => at.wrapping_sub(ledger.delta),
            Some(ledger) => {
                self.doubtful = at.wrapping_sub(ledger.delta);
                hello.released
            }
            None => hello.released,
        };
        // A near end releases only what a far end has committed.
        let committed = committed.max(hello.released);
        // A topic's numbers are the same at both ends, where they can be.
        sink.skip(committed.saturating_sub(at));
        self.correspond(hello.stream, segment, committed)?;
        let window = u32::try_from(self.import.window).unwrap_or(u32::MAX);
        self.far = Some(Far::new(self.import.machine, self.import.run, hello, committed, window));
        Ok(())
    }

    /// What is committed next in the local segment is `frame` of the stream: written down before anything is.
    fn correspond(&mut self, stream: u64, segment: u64, frame: u64) -> Result<(), No> {
        let sink = self.sink.as_mut().expect("opened by the caller");
        let ledger = Ledger { stream, segment, delta: sink.at().wrapping_sub(frame), epoch: sink.epoch() };
        let failed = |e| No::Failed(format!("what is needed after a restart cannot be written: {e}"));
        ledger.write(self.import.kind, &self.import.name).map_err(failed)
    }

    fn segment(&self) -> Result<u64, No> {
        let found = ramway::survey::inspect(&self.import.name).map_err(|e| No::Failed(e.to_string()))?;
        Ok(place::identity(&found))
    }

    fn open_sink(&mut self) -> Result<(), No> {
        let sink = match self.sink.take() {
            Some(sink) => sink,
            None => (self.import.open)(self.align, self.capacity).map_err(|e| No::Failed(e.to_string()))?,
        };
        if let Some(align) = sink.align()
            && align != self.align
        {
            let text = format!(
                "the {} here aligns messages to {align} bytes and the one that it comes from to {}; whoever makes the one here \
                 must ask for {}",
                self.import.kind, self.align, self.align
            );
            sink.leave(Ending::Dead);
            return Err(No::Failed(text));
        }
        self.complaint.forget();
        self.sink = Some(sink);
        Ok(())
    }

    /// Opens the local segment again after the sender's role was given up with an end.
    fn open_again(&mut self) -> Result<(), No> {
        if self.sink.is_some() {
            return Ok(());
        }
        self.open_sink()?;
        let Some(far) = self.far.as_ref().filter(|_| self.import.of.is_none()) else { return Ok(()) };
        let (stream, frame) = (far.stream(), far.expected().frame);
        let segment = self.segment()?;
        self.correspond(stream, segment, frame)
    }

    /// Messages cannot come any more.
    fn skip(&mut self, from: u64, to: u64) -> Result<(), No> {
        self.room = None;
        let numbers = to - from;
        counters::add(&self.import.counters.lost, numbers);
        self.open_again()?;
        if let Some(sink) = &mut self.sink {
            sink.abort();
            sink.skip(numbers);
            // A ring has no numbers to leave out: it corresponds from here on.
            let stream = self.far.as_ref().map_or(0, Far::stream);
            let segment = self.segment()?;
            self.correspond(stream, segment, to)?;
        }
        Ok(())
    }

    /// The near sender has ended: so does the local one.
    fn end(&mut self, end: End) -> Result<(), No> {
        self.open_again()?;
        if let Some(sink) = self.sink.take() {
            sink.leave(end.how);
        }
        counters::add(&self.import.counters.ends, 1);
        if let Some(far) = &mut self.far {
            far.end_seen(end);
        }
        if self.import.of.is_some() {
            self.ack()?;
            return Err(No::Over(Finish::Ended(end.how)));
        }
        Ok(())
    }

    fn on_data(&mut self, payload: &Payload, since: Instant) -> Result<(), No> {
        let bytes = payload.bytes();
        let Some((header, mut records)) = wire::decode_data(&bytes) else {
            counters::add(&self.import.counters.refused, 1);
            return Ok(());
        };
        if !self.is_mine(header.near) {
            return Ok(());
        }
        if self.far.as_ref().is_none_or(|far| far.stream() != header.stream) {
            return self.say(header.near, &self.unknown(header.stream, header.attempt));
        }
        while let Some((record, payload)) = wire::next_record(&mut records) {
            let Some(far) = &mut self.far else { break };
            match far.judge(header.attempt, &record) {
                Judgement::Take => self.take(&record, payload, since)?,
                Judgement::Have => counters::add(&self.import.counters.duplicates_dropped, 1),
                Judgement::Gap => break,
            }
        }
        if !records.is_empty() && self.far.as_ref().is_some_and(|far| !far.ack().again) {
            counters::add(&self.import.counters.refused, 1);
        }
        self.make_visible();
        self.unanswered += bytes.len() as u64;
        if self.is_due() {
            return self.ack();
        }
        self.answer_at.get_or_insert_with(|| Instant::now() + ACK_DELAY);
        Ok(())
    }

    fn take(&mut self, record: &Record, payload: &[u8], since: Instant) -> Result<(), No> {
        let len = payload.len() as u32;
        if record.start.offset == 0 {
            self.room = None;
            self.open_again()?;
            if let Some(sink) = &mut self.sink {
                sink.abort();
                // Numbers that the publisher itself left out.
                sink.skip(record.seq.saturating_sub(record.start.frame));
            }
            let to = self.reserve(record.total)?;
            let late = match self.import.of {
                Some(_) if record.time != 0 => {
                    self.transit.late(record.time, since.saturating_duration_since(self.begun))
                }
                _ => Duration::ZERO,
            };
            self.room = Some(Room { to, len: record.total, since, late });
        }
        let room = self.room.as_ref().filter(|room| room.len == record.total);
        let (Some(room), Some(sink), Some(far)) = (room, &mut self.sink, &mut self.far) else {
            // A piece of a message whose beginning is gone.
            if let Some(far) = &mut self.far {
                far.forget_taken();
            }
            return Ok(());
        };
        // SAFETY: `room.to` has room for `total` bytes, of which no record says more than `offset + len`; they are this
        // sender's until the commit. What came from the link lies elsewhere.
        unsafe { room.to.add(record.start.offset as usize).copy_from_nonoverlapping(payload.as_ptr(), payload.len()) };
        far.taken(record, len);
        if record.after(len).offset == 0 && record.start.offset + len == record.total {
            let spent = room.since.elapsed() + room.late;
            self.room = None;
            sink.commit(record, spent).map_err(|e| No::Failed(e.to_string()))?;
            self.written = Some(record.next);
            let Counters { messages, bytes, possible_duplicates, .. } = &*self.import.counters;
            counters::add(messages, 1);
            counters::add(bytes, u64::from(record.total));
            if record.next <= self.doubtful {
                counters::add(possible_duplicates, 1);
            }
        }
        Ok(())
    }

    /// What is written is the receiver's from here on, whatever happens to this process.
    fn make_visible(&mut self) {
        if let (Some(frame), Some(sink), Some(far)) = (self.written.take(), &mut self.sink, &mut self.far) {
            sink.flush();
            far.committed(frame);
        }
    }

    /// Room in the local segment, for which it waits: then nothing more is confirmed, and the near sender comes to wait too.
    fn reserve(&mut self, len: u32) -> Result<*mut u8, No> {
        let sink = self.sink.as_mut().expect("opened by the caller");
        match sink.reserve(len, WaitLimit::None) {
            Ok(to) => return Ok(to),
            Err(e) if e.kind() == ErrorKind::TooLarge => return Err(No::Failed(e.to_string())),
            Err(_) => {}
        }
        self.make_visible();
        self.ack()?;
        loop {
            if self.import.stop.load(Ordering::Relaxed) {
                return Err(No::Stopped);
            }
            let sink = self.sink.as_mut().expect("opened by the caller");
            match sink.reserve(len, WaitLimit::For(CHECK_INTERVAL)) {
                Ok(to) => return Ok(to),
                Err(e) => match e.kind() {
                    ErrorKind::TimedOut | ErrorKind::Interrupted | ErrorKind::Full => self.queue_what_came()?,
                    ErrorKind::Closed => self.wait_for_receiver(Ending::Closed)?,
                    ErrorKind::PeerDead => self.wait_for_receiver(Ending::Dead)?,
                    _ => return Err(No::Failed(e.to_string())),
                },
            }
        }
    }

    /// The local receiver has ended, and there is no room: so is the near sender told, until somebody takes its place.
    fn wait_for_receiver(&mut self, how: Ending) -> Result<(), No> {
        if self.import.of.is_some() {
            return self.receiver_has_ended(how);
        }
        let sink = self.sink.as_mut().expect("opened by the caller");
        let end = End { how, epoch: sink.peer_epoch() };
        counters::add(&self.import.counters.ends, 1);
        self.set_far_end(Some(end))?;
        loop {
            if self.import.stop.load(Ordering::Relaxed) {
                return Err(No::Stopped);
            }
            let sink = self.sink.as_mut().expect("opened by the caller");
            match sink.wait_for_peer(CHECK_INTERVAL) {
                Ok(_) => return self.set_far_end(None),
                Err(e) if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::Interrupted) => self.queue_what_came()?,
                Err(e) => return Err(No::Failed(e.to_string())),
            }
        }
    }

    fn set_far_end(&mut self, end: Option<End>) -> Result<(), No> {
        if let Some(far) = &mut self.far {
            far.set_far_end(end);
        }
        self.ack()
    }

    /// Takes in what has come while something else is waited for. A near end that asks is answered; what it says is acted upon
    /// in its place.
    fn queue_what_came(&mut self) -> Result<(), No> {
        let mut asked = false;
        while let Ok(came) = self.came.try_recv() {
            match came {
                Came::Hello(hello) => {
                    asked = true;
                    // The newest says it all; one behind other data stays in its place.
                    if !matches!(self.backlog.back(), Some(Came::Hello(_))) {
                        self.backlog.push_back(Came::Hello(hello));
                    } else if let Some(last) = self.backlog.back_mut() {
                        *last = Came::Hello(hello);
                    }
                }
                Came::Over => self.backlog.push_back(Came::Over),
                Came::Data(payload, since) => {
                    let len = payload.len() as u64;
                    // An honest near end never has more under way. What is dropped is asked for again.
                    if self.backlog_bytes + len <= 2 * self.import.window + (1 << 20) {
                        self.backlog_bytes += len;
                        self.backlog.push_back(Came::Data(payload, since));
                    }
                }
            }
        }
        if asked { self.ack() } else { Ok(()) }
    }
}
