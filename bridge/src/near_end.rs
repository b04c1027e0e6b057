//! The near end of a reliable stream at work: a thread that reads a local segment ahead and puts it on the link.

use crate::config::OnDisconnect;
use crate::counters::{self, Counters, Gauges};
use crate::link::{How, Inlet, Link, LinkError, Outlet};
use crate::local::{Found, Source};
use crate::lock::locked;
use crate::log;
use crate::rpc;
use crate::stream::{Ack, End, Ending, Near, Pos, Record};
use crate::wire;
use ramway::ErrorKind;
use ramway::ring::raw::WaitLimit;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest that a wait takes before the thread checks whether it is to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// What a near end is about.
pub struct Export {
    /// The link.
    pub link: Link,
    /// What its keys begin with.
    pub base: String,
    /// `ring` or `topic`, as in keys.
    pub kind: &'static str,
    /// The segment's name.
    pub name: String,
    /// Of a connection's stream: the machine at its other end, which knows of it. An end is final then, and nothing is kept for a
    /// successor.
    pub other: Option<u64>,
    /// This machine.
    pub machine: u64,
    /// The number of the segment.
    pub stream: u64,
    /// The epoch of the sender whose close an earlier bridge was told of, and may not have passed on.
    pub told: Option<u32>,
    /// Bytes that may be under way.
    pub window: u64,
    /// Bytes of the longest piece.
    pub chunk: u64,
    /// What a broken link does.
    pub on_disconnect: OnDisconnect,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// The bridge is to end.
    pub stop: Arc<AtomicBool>,
}

/// Why a near end is over.
#[derive(Debug, PartialEq, Eq)]
pub enum Over {
    /// The bridge ends.
    Stopped,
    /// The sender has closed, and everything is at the other end.
    Finished,
    /// A broken link, or the end of the far receiver, made it let the sender go, in this way. It is to be opened again when it
    /// is [wanted](Export::wait_for_far).
    LetGo(Ending),
    /// The segment or the link failed.
    Failed(String),
}

/// What a near end hears.
#[derive(Debug)]
pub enum Heard {
    /// The far end says where it is.
    Ack(Ack),
    /// Of a connection: there is no far end any more.
    Over,
}

/// Where what is heard of the far end goes to.
#[derive(Clone, Debug)]
pub struct Ear {
    to: mpsc::Sender<Heard>,
    waker: Arc<Mutex<Option<ramway::Waker>>>,
}

/// Where a near end hears it.
pub struct Hearing {
    heard: mpsc::Receiver<Heard>,
    waker: Arc<Mutex<Option<ramway::Waker>>>,
    /// Of a segment; what is heard of a connection comes another way.
    inlet: Option<Inlet>,
}

/// What is put into the one is heard at the other.
#[must_use]
pub fn ear() -> (Ear, Hearing) {
    let (to, heard) = mpsc::channel();
    let waker = Arc::default();
    (Ear { to, waker: Arc::clone(&waker) }, Hearing { heard, waker, inlet: None })
}

impl Ear {
    /// Tells the near end, whatever it waits for.
    pub fn tell(&self, heard: Heard) {
        // It fails only where nobody waits any more.
        let _ = self.to.send(heard);
        if let Some(waker) = &*locked(&self.waker) {
            waker.wake();
        }
    }
}

/// A message of which the first bytes are sent.
struct Current {
    found: Found,
    offset: u32,
}

struct Running<'a> {
    export: &'a Export,
    near: Near,
    source: Box<dyn Source>,
    hello: Outlet,
    data: Option<(u64, Outlet)>,
    hearing: Hearing,
    current: Option<Current>,
    /// Read ahead up to here.
    read: u64,
    /// Of each piece that is not confirmed whole: the frame before which it ends, whole messages and their bytes.
    unconfirmed: VecDeque<(u64, u64, u64)>,
    unconfirmed_messages: u64,
    asked: Option<Instant>,
    begun: Instant,
    gauges: Gauges,
    connected: bool,
    complaint: log::Once,
}

impl Export {
    /// Carries the segment until it is over.
    pub fn run(&self, source: Box<dyn Source>) -> Over {
        counters::add(&self.counters.streams, 1);
        let over = match self.hear() {
            Ok(hearing) => self.run_hearing(source, hearing),
            Err(e) => Over::Failed(e.to_string()),
        };
        counters::sub(&self.counters.streams, 1);
        over
    }

    /// Hears the far end of a segment's stream.
    fn hear(&self) -> Result<Hearing, LinkError> {
        let (to, mut hearing) = ear();
        let counters = self.counters.clone();
        let inlet =
            self.link.inlet(
                self.key(&format!("back/{:016x}", self.machine)),
                move |arrived| match wire::decode_ack(&arrived.payload().bytes()) {
                    Some(ack) => to.tell(Heard::Ack(ack)),
                    None => counters::add(&counters.refused, 1),
                },
            )?;
        hearing.inlet = Some(inlet);
        Ok(hearing)
    }

    /// [`run`](Self::run), with what the far end says.
    pub fn run_hearing(&self, source: Box<dyn Source>, hearing: Hearing) -> Over {
        match Running::begin(self, source, hearing) {
            Ok(mut running) => {
                let over = running.run();
                running.set_connected(false);
                running.gauges.set(&self.counters, Gauges::default());
                let (how, for_good) = match over {
                    Over::Finished => (Ending::Closed, false),
                    Over::LetGo(how) => (how, true),
                    // As if this process had been killed: the sender is to know that this was not all.
                    Over::Stopped | Over::Failed(_) => (Ending::Dead, false),
                };
                running.source.leave(how, for_good);
                over
            }
            Err(e) => Over::Failed(e.to_string()),
        }
    }

    /// Waits until a far end wants the segment again whose sender was let go. False: the bridge ends.
    ///
    /// # Errors
    /// If the link is closed.
    pub fn wait_for_far(&self) -> Result<bool, LinkError> {
        let hearing = self.hear()?;
        let hello = self.link.outlet(self.key("hello"), How::Waiting)?;
        // Without a place: a far end answers with its own.
        let near = Near::new(self.machine, self.stream, crate::place::first_attempt(), 0, self.window, (0, 0));
        let mut asked = Instant::now() - Duration::from_secs(1);
        while !self.stop.load(Ordering::Relaxed) {
            if asked.elapsed() >= Duration::from_millis(500) {
                hello.put(wire::encode_hello(&near.hello()))?;
                asked = Instant::now();
            }
            match hearing.heard.recv_timeout(CHECK_INTERVAL) {
                Ok(Heard::Ack(ack)) if ack.stream == self.stream && ack.far_end.is_none() => return Ok(true),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(false)
    }

    fn key(&self, verb: &str) -> String {
        wire::key(&self.base, self.kind, &self.name, verb)
    }

    /// A segment's stream is announced to all, a connection's to the one that knows of it.
    fn hello_key(&self) -> String {
        self.other.map_or_else(|| self.key("hello"), |other| self.key(&format!("to/{other:016x}")))
    }
}

impl<'a> Running<'a> {
    fn begin(export: &'a Export, mut source: Box<dyn Source>, hearing: Hearing) -> Result<Self, LinkError> {
        *locked(&hearing.waker) = Some(source.waker());
        let first = source.first();
        let near = Near::new(
            export.machine,
            export.stream,
            crate::place::first_attempt(),
            first,
            export.window,
            source.geometry(),
        );
        let running = Self {
            complaint: log::Once::default(),
            export,
            near,
            source,
            hello: export.link.outlet(export.hello_key(), How::Waiting)?,
            data: None,
            hearing,
            current: None,
            read: first,
            unconfirmed: VecDeque::new(),
            unconfirmed_messages: 0,
            asked: None,
            begun: Instant::now(),
            gauges: Gauges::default(),
            connected: false,
        };
        Ok(running)
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// This bridge's own clock, for what a call spends under way. Never 0.
    fn time(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64 + 1
    }

    fn run(&mut self) -> Over {
        loop {
            if self.export.stop.load(Ordering::Relaxed) {
                return Over::Stopped;
            }
            while let Ok(heard) = self.hearing.heard.try_recv() {
                if let Err(over) = self.on_heard(&heard) {
                    return over;
                }
            }
            if let Err(over) = self.on_time() {
                return over;
            }
            self.set_gauges();
            let done = if self.near.is_at_end() {
                self.after_end()
            } else if self.near.room() > 0 {
                self.send()
            } else {
                self.wait_for_ack()
            };
            if let Err(over) = done {
                return over;
            }
        }
    }

    fn wait_for_ack(&mut self) -> Result<(), Over> {
        let wait = self.near.ask_at().saturating_sub(self.now()).clamp(Duration::from_millis(1), CHECK_INTERVAL);
        self.source.look();
        match self.hearing.heard.recv_timeout(wait) {
            Ok(heard) => self.on_heard(&heard),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => Err(Over::Failed("the link is closed".into())),
        }
    }

    fn say_hello(&mut self) -> Result<(), Over> {
        self.asked.get_or_insert_with(Instant::now);
        let mut hello = self.near.hello();
        if self.export.other.is_some() {
            hello.time = self.time();
        }
        let bytes = wire::encode_hello(&hello);
        self.hello.put(bytes).map_err(|e| Over::Failed(e.to_string()))
    }

    fn on_time(&mut self) -> Result<(), Over> {
        let now = self.now();
        let silent = now.saturating_sub(self.near.heard());
        // A far end that is asked every second at least is gone after three without an answer.
        if silent > Duration::from_secs(4) {
            self.set_connected(false);
        }
        if self.export.on_disconnect.gives_up_after(silent) {
            counters::add(&self.export.counters.ejected, 1);
            return Err(Over::LetGo(Ending::Dead));
        }
        if self.near.on_time(now) { self.say_hello() } else { Ok(()) }
    }

    fn set_connected(&mut self, connected: bool) {
        // A connection is counted as a whole.
        if connected != self.connected && self.export.other.is_none() {
            self.connected = connected;
            let counter = &self.export.counters.connected;
            if connected { counters::add(counter, 1) } else { counters::sub(counter, 1) }
        }
    }

    fn on_heard(&mut self, heard: &Heard) -> Result<(), Over> {
        match heard {
            Heard::Ack(ack) => self.on_ack(ack),
            // What the sender's end was is told, and the answer was lost; or the other bridge has lost the connection.
            Heard::Over if self.near.end().is_some() => Err(Over::Finished),
            Heard::Over => Err(Over::LetGo(Ending::Dead)),
        }
    }

    fn on_ack(&mut self, ack: &Ack) -> Result<(), Over> {
        if ack.stream != self.near.hello().stream {
            return Ok(());
        }
        if let Some(asked) = self.asked.take() {
            self.export.counters.round_trip_ns.store(asked.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
        let step = self.near.on_ack(ack, self.now());
        if self.near.far() != Some(ack.far) {
            let Export { kind, name, .. } = self.export;
            self.complaint.say(&format!(
                "export of the {kind} '{name}': machine {:016x} imports it too, and it goes to {:016x}; each needs a rule of its own \
                 here, with its own prefix",
                ack.far,
                self.near.far().unwrap_or(0)
            ));
            return Ok(());
        }
        self.set_connected(true);
        counters::add(&self.export.counters.possible_duplicates, step.possible_duplicates);
        if let Some(before) = step.release {
            self.count_confirmed(before);
        }
        if let Some(to) = step.seek {
            // It is sent again, and counted then.
            self.unconfirmed.clear();
            self.unconfirmed_messages = 0;
            counters::add(&self.export.counters.resumes, 1);
            self.seek(to)?;
        }
        if let Some(before) = step.release {
            // Everything before was read: it was sent, or sought past just now.
            self.source.release(before.min(self.read));
        }
        if step.hello {
            self.say_hello()?;
        }
        match self.near.far_end() {
            // The sender is told the same by the kernel's means, as soon as it finds no room.
            Some(end) => {
                counters::add(&self.export.counters.ends, 1);
                Err(Over::LetGo(end.how))
            }
            None => Ok(()),
        }
    }

    fn count_confirmed(&mut self, before: u64) {
        while let Some(&(until, messages, bytes)) = self.unconfirmed.front()
            && until <= before
        {
            self.unconfirmed.pop_front();
            self.unconfirmed_messages -= messages;
            counters::add(&self.export.counters.messages, messages);
            counters::add(&self.export.counters.bytes, bytes);
        }
    }

    fn set_gauges(&mut self) {
        let now = Gauges {
            in_flight: self.near.in_flight(),
            unconfirmed: self.unconfirmed_messages,
            window: self.near.window(),
            backlog: self.source.backlog(),
        };
        self.gauges.set(&self.export.counters, now);
    }

    /// Has the frame at `to` be the next one that is read.
    fn seek(&mut self, to: Pos) -> Result<(), Over> {
        self.current = None;
        self.source.rewind();
        let first = self.source.first();
        self.read = first;
        if to.frame < first {
            // A topic's publisher has let this subscriber go meanwhile.
            self.near.go_to(Pos::at(first));
            return Ok(());
        }
        while self.read < to.frame {
            match self.source.next(WaitLimit::None) {
                Ok(found) => self.read = found.next,
                Err(e) => return Err(self.not_there(to, &e.to_string())),
            }
        }
        if self.read != to.frame {
            return Err(self.not_there(to, "no message begins there"));
        }
        if to.offset > 0 {
            match self.source.next(WaitLimit::None) {
                Ok(found) if to.offset < found.len => {
                    self.read = found.next;
                    self.current = Some(Current { found, offset: to.offset });
                }
                Ok(_) => return Err(self.not_there(to, "the message is shorter")),
                Err(e) => return Err(self.not_there(to, &e.to_string())),
            }
        }
        Ok(())
    }

    fn not_there(&self, to: Pos, why: &str) -> Over {
        counters::add(&self.export.counters.refused, 1);
        let Export { kind, name, .. } = self.export;
        Over::Failed(format!(
            "the other bridge asks for the {kind} '{name}' from byte {} of its frame {} on, which it does not have ({why}); remove \
             what it has of it there",
            to.offset, to.frame
        ))
    }

    /// Sends one piece of the link: what is there, up to what may be sent.
    fn send(&mut self) -> Result<(), Over> {
        let most = self.near.room().min(self.export.chunk).max(1);
        let mut bytes = None;
        let mut taken = 0;
        // Messages that end here, and their bytes.
        let mut whole = (0, 0);
        let mut until = self.near.cursor();
        while taken < most {
            if self.current.is_none() {
                // Waits only while there is nothing to send.
                let wait =
                    self.near.ask_at().saturating_sub(self.now()).clamp(Duration::from_millis(1), CHECK_INTERVAL);
                let limit = if bytes.is_none() { WaitLimit::For(wait) } else { WaitLimit::None };
                match self.source.next(limit) {
                    Ok(found) => {
                        self.read = found.next;
                        self.current = Some(Current { found, offset: 0 });
                    }
                    Err(_) if bytes.is_some() => break,
                    Err(e) => return self.nothing(&e),
                }
            }
            let sent_at = self.time();
            let Some(Current { found, offset }) = &mut self.current else { break };
            let left = found.len - *offset;
            // The time of a call goes in one piece.
            let since = found.since.filter(|_| *offset == 0);
            let least = if since.is_some() { u64::from(rpc::TIME_END) } else { 1 };
            let len = u64::from(left).min((most - taken).max(least)) as u32;
            let record = Record {
                start: Pos { frame: found.start, offset: *offset },
                next: found.next,
                tag: found.tag,
                seq: found.seq,
                time: found.since.map_or(found.time, |_| sent_at),
                total: found.len,
                type_id: found.type_id,
            };
            // SAFETY: the source gave these `found.len` bytes, and keeps them until the frame is released or it is left or
            // goes back, which both put `current` aside.
            let payload = unsafe { std::slice::from_raw_parts(found.data.add(*offset as usize), len as usize) };
            let to = bytes.get_or_insert_with(|| {
                let room = most as usize + wire::RECORD_HEADER * 4;
                wire::begin_data(self.export.machine, self.export.stream, self.near.attempt(), room)
            });
            wire::push_record(to, &record, payload);
            if let Some(since) = since {
                let at = to.len() - len as usize;
                rpc::shorten(&mut to[at..], since.elapsed());
            }
            // A message's header counts too, or messages without a payload would have no end.
            taken += u64::from(len) + wire::RECORD_HEADER as u64;
            until = record.after(len);
            *offset += len;
            if *offset == found.len {
                whole = (whole.0 + 1, whole.1 + u64::from(found.len));
                self.current = None;
            }
        }
        let Some(bytes) = bytes else { return Ok(()) };
        self.unconfirmed.push_back((until.frame, whole.0, whole.1));
        self.unconfirmed_messages += whole.0;
        self.put(bytes, until, taken)
    }

    fn put(&mut self, bytes: Vec<u8>, until: Pos, taken: u64) -> Result<(), Over> {
        let failed = |e: LinkError| Over::Failed(e.to_string());
        let Some(far) = self.near.far() else { return Ok(()) };
        if self.data.as_ref().is_none_or(|(of, _)| *of != far) {
            let key = self.export.key(&format!("to/{far:016x}"));
            self.data = Some((far, self.export.link.outlet(key, How::Waiting).map_err(failed)?));
        }
        let (_, outlet) = self.data.as_ref().expect("made above");
        counters::add(&self.export.counters.sent_bytes, bytes.len() as u64);
        outlet.put(bytes).map_err(failed)?;
        let now = self.now();
        self.near.sent(until, taken, now);
        Ok(())
    }

    /// The segment has nothing more now.
    fn nothing(&mut self, error: &ramway::Error) -> Result<(), Over> {
        let how = match error.kind() {
            ErrorKind::TimedOut if self.export.told == Some(self.source.peer_epoch()) => Ending::Closed,
            ErrorKind::TimedOut | ErrorKind::Interrupted | ErrorKind::Empty => return Ok(()),
            ErrorKind::Closed => Ending::Closed,
            ErrorKind::PeerDead => Ending::Dead,
            // The publisher has let this subscriber go, and it goes on at what is left.
            ErrorKind::Lagged => {
                self.current = None;
                self.source.rewind();
                self.read = self.source.first();
                self.near.lost_until(self.read);
                return self.say_hello();
            }
            _ => return Err(Over::Failed(error.to_string())),
        };
        let now = self.now();
        counters::add(&self.export.counters.ends, 1);
        self.near.ended(End { how, epoch: self.source.peer_epoch() }, now);
        self.say_hello()
    }

    /// The sender has ended, and the far end is to act upon it.
    fn after_end(&mut self) -> Result<(), Over> {
        let Some((end, seen)) = self.near.end() else { return Ok(()) };
        if !seen || self.near.waits() {
            return self.wait_for_ack();
        }
        if self.export.other.is_some() {
            return Err(Over::Finished);
        }
        if self.source.peer_epoch() != end.epoch {
            // Another sender is there already.
            self.near.goes_on();
            return Ok(());
        }
        if end.how == Ending::Closed {
            let Export { kind, name, stream, .. } = self.export;
            if let Err(e) = crate::place::finished(kind, name, *stream, end.epoch) {
                // It is passed on again by the next bridge, which does no harm.
                log::say(&format!("export of the {kind} '{name}': its end cannot be noted: {e}"));
            }
            return Err(Over::Finished);
        }
        match self.source.wait_for_peer(CHECK_INTERVAL) {
            Ok(_) => self.near.goes_on(),
            Err(e) if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            // The name is gone, so nobody can come.
            Err(e) if e.kind() == ErrorKind::Closed => return Err(Over::Finished),
            Err(e) => return Err(Over::Failed(e.to_string())),
        }
        Ok(())
    }
}
